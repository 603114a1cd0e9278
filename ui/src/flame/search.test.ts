// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { find, type Matcher, parseSearch } from "./search";
import { treeOf } from "./testing";

const tree = treeOf(
  "main;alloc/libc.so 1\nmain;work;Alloc;alloc/libc.so 2\nmain;work 4\nmain;b(c 8",
);

function search(text: string) {
  const { match } = parseSearch(text);
  const { frames, value } = find(tree, match as Matcher);
  return { frames, value };
}

describe("search", () => {
  it("looks for text in any case, and counts a stack once", () => {
    expect(search("ALLOC")).toEqual({ frames: 3, value: 3 });
  });
  it("takes text as it is, not as an expression", () => {
    expect(search("b(c")).toEqual({ frames: 1, value: 8 });
  });
  it("understands /an expression/", () => {
    expect(search("/^w|^b/")).toEqual({ frames: 2, value: 14 });
  });
  it("looks for modules when told to", () => {
    expect(search("module:libc")).toEqual({ frames: 2, value: 3 });
    expect(search("module:/^prog$/")).toEqual({ frames: 4, value: 15 });
  });
  it("says what is wrong with an expression", () => {
    const { match, error } = parseSearch("/a(/");
    expect(match).toBeNull();
    expect(error).toContain("Unterminated group");
  });
  it.each(["", "  ", "module:"])("asks for nothing by %j", (text) => {
    expect(parseSearch(text)).toEqual({ match: null, error: "" });
  });
});
