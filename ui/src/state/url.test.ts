// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { DEFAULTS, formatUrl, parseUrl, type State } from "./url";

describe("the address", () => {
  it("is empty for the defaults, and their inverse", () => {
    expect(formatUrl(DEFAULTS)).toBe("");
    expect(parseUrl("")).toEqual(DEFAULTS);
  });

  it("holds every field there and back", () => {
    const other: State = {
      view: "captures",
      query: '{node="a b",comm=~"x|y+&="}',
      from: "2026-01-31T12:00:00Z",
      to: "now-5m",
      live: 7,
      type: "offcpu",
      show: "table",
      tree: "sandwich",
      fn: "at::native::add(int, char const*) #1",
      search: "/^ä+$/",
      zoom: "1a2b-3c4d",
      sort: "total",
      reverse: true,
      diff: true,
      base_query: '{node="c"}',
      base_from: "now-2h",
      base_to: "now-1h",
      capture: "01K",
      host: false,
      open: "x",
    };
    for (const key of Object.keys(DEFAULTS) as (keyof State)[]) {
      expect(other[key], `the test's ${key} must not be the default`).not.toEqual(DEFAULTS[key]);
    }
    expect(parseUrl(formatUrl(other))).toEqual(other);
  });

  it.each([
    ["an unknown view is the default", "?view=admin", "view", "profile"],
    ["an unknown tree is the default", "?tree=sideways", "tree", "down"],
    ["a refresh that is no number is none", "?live=often", "live", 0],
    ["a refresh below the shortest is the shortest", "?live=0.01", "live", 2],
    ["a refresh cannot be negative", "?live=-5", "live", 0],
    ["a refresh cannot be endless", "?live=1e99", "live", 3600],
    ["what is no field is left aside", "?__proto__=x&nope=1", "type", "cpu"],
  ])("%s", (_, search, key, want) => {
    expect(parseUrl(search)[key as keyof State]).toBe(want);
  });
});
