// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { sampledSeconds } from "./load";

describe("the seconds a rate is over", () => {
  const range = { from: 0, to: 185_000 };
  it("are the range's", () => expect(sampledSeconds(range)).toBe(185));
  it("are a capture's own, not those of the range around it", () =>
    expect(sampledSeconds(range, { durationMs: 5000 })).toBe(5));
  it("are the range's where it is a part of the capture", () =>
    expect(sampledSeconds({ from: 0, to: 2000 }, { durationMs: 5000 })).toBe(2));
  it("are not known of a capture that is not known", () =>
    expect(sampledSeconds(range, null)).toBeNaN());
});
