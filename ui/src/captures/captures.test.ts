// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { addUp, byPlace, sentence } from "../profile/losses";
import { mistake } from "./form";
import { tone } from "./states";

const order = { nodes: ["n"], pids: [1], duration: "10s", hz: 99 };

describe("an order", () => {
  it("that is right has no mistake", () => expect(mistake(order, "1")).toBe(""));
  it.each([
    ["no node", { ...order, nodes: [] }, "Choose one node or more."],
    ["pids that are none", { ...order, pids: [Number.NaN] }, "is no list of process ids"],
    ["a duration without unit", { ...order, duration: "10" }, "is no duration"],
    ["no duration at all", { ...order, duration: "0s" }, "is no duration"],
    ["too many samples", { ...order, hz: 998 }, "Choose 1 to 997"],
    ["samples that are no number", { ...order, hz: Number.NaN }, "Choose 1 to 997"],
  ])("with %s says so", (_, wrong, message) => expect(mistake(wrong, "x")).toContain(message));
});

describe("states", () => {
  it("tell good from bad, also those the page does not know", () => {
    expect(["RUNNING", "SUCCEEDED", "PARTIAL", "NO_SERVER", "NEWER"].map(tone)).toEqual([
      "busy",
      "good",
      "bad",
      "bad",
      "quiet",
    ]);
  });
});

describe("a loss", () => {
  const plain = (text: string) => text.replaceAll("\u202f", " ");
  it("is a share of what could have been seen", () => {
    const loss = { node: "node-17", place: "ring", count: 21 };
    expect(plain(sentence({ ...loss, place: "exited" }, 1000))).toBe(
      "2.1 % without names at exited on node-17 (21)",
    );
    expect(plain(sentence(loss, 979))).toBe("2.1 % lost at ring on node-17 (21)");
  });
  it("of both sides of a diff is one", () => {
    const loss = (node: string, count: number) => ({ node, place: "ring", count });
    expect(byPlace([loss("a", 1), loss("b", 2), loss("a", 3), loss("c", 0)])).toEqual([
      loss("a", 4),
      loss("b", 2),
    ]);
  });
  it("of names alone is none of samples", () => {
    const losses = [
      { place: "exited", count: 1000 },
      { place: "exec", count: 304 },
      { place: "ring", count: 2 },
    ];
    expect(addUp(losses)).toEqual({ lost: 2, nameless: 1304 });
  });
  it("is a count where the rest is not known", () => {
    expect(plain(sentence({ node: "", place: "spool", count: 1234 }, undefined))).toBe(
      "1 234 lost at spool",
    );
  });
});
