// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import {
  durationMs,
  ends,
  formatDuration,
  parseTime,
  rangeBefore,
  rangeError,
  shifted,
  widened,
} from "./time";

const NOW = Date.parse("2026-12-01T12:00:00Z");

describe("a time", () => {
  it.each([
    ["now", NOW],
    ["now-5m", NOW - 300e3],
    ["now-1h30m", NOW - 5400e3],
    ["2026-12-01T11:00:00Z", NOW - 3600e3],
    ["2026-12-01T12:00:00+01:00", NOW - 3600e3],
    ["1796126400", 1796126400e3],
    ["1796126400.5", 1796126400500],
    [" now ", NOW],
  ])("%s is understood", (text, want) => expect(parseTime(text, NOW)).toBe(want));

  it.each([
    "",
    "later",
    "now+5m",
    "now-5",
    "now-m",
    "5m",
    "2026-12",
    "yesterday",
    "-1",
    "1e9",
    "now-5m x",
  ])("%j is none", (text) => expect(parseTime(text, NOW)).toBeNull());
});

describe("a duration", () => {
  it.each([
    ["10s", 10e3],
    ["1m30s", 90e3],
    ["1.5h", 5400e3],
  ])("%s is understood", (text, want) => expect(durationMs(text)).toBe(want));
  it.each(["", "10", "s", "-1s", "1y"])("%j is none", (text) => expect(durationMs(text)).toBeNaN());
  it("is written in the greatest unit that leaves nothing over", () => {
    expect([5400e3, 7200e3, 90e3, 86400e3].map(formatDuration)).toEqual(["90m", "2h", "90s", "1d"]);
  });
});

describe("a range", () => {
  it("says why it is none", () => {
    expect(rangeError({ from: "now-5m", to: "now" }, NOW)).toBe("");
    expect(rangeError({ from: "x", to: "now" }, NOW)).toContain('from: "x" is no time');
    expect(rangeError({ from: "now", to: "now-5m" }, NOW)).toContain("ends before it begins");
  });
  it("before another is as long and ends where that begins", () => {
    expect(rangeBefore({ from: "now-15m", to: "now" }, NOW)).toEqual({
      from: "now-30m",
      to: "now-15m",
    });
    const fixed = { from: "2026-12-01T10:00:00Z", to: "2026-12-01T11:00:00Z" };
    expect(rangeBefore(fixed, NOW)).toEqual({
      from: "2026-12-01T09:00:00Z",
      to: "2026-12-01T10:00:00Z",
    });
  });
  it("moves and widens, but not into the future", () => {
    expect(widened({ from: "now-15m", to: "now" }, NOW)).toEqual({ from: "now-30m", to: "now" });
    expect(ends(shifted({ from: "now-10m", to: "now" }, 0.5, NOW), NOW).to).toBe(NOW);
    expect(ends(shifted({ from: "now-10m", to: "now" }, -0.5, NOW), NOW).to).toBe(NOW - 300e3);
    const wide = ends(
      widened({ from: "2026-12-01T11:00:00Z", to: "2026-12-01T12:00:00Z" }, NOW),
      NOW,
    );
    expect([wide.from, wide.to]).toEqual([NOW - 7200e3, NOW]);
  });
});
