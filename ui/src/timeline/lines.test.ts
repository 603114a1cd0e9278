// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { Series } from "../api/answers";
import { columnsOf, type Line, scaleTop, stepSeconds, together } from "./lines";
import { linesOf, PANELS } from "./panels";

const series = (labels: Record<string, string>, ...points: [number, number][]): Series => ({
  metric: "m",
  labels,
  times: points.map(([t]) => t),
  values: points.map(([, v]) => v),
});
const line = (...points: [number, number][]): Line => ({
  label: "l",
  colour: "--line-1",
  points: new Map(points),
});

describe("lines", () => {
  it("of several nodes are a sum or a mean, of those that have the point", () => {
    const two = [series({ node: "a" }, [0, 1], [1000, 2]), series({ node: "b" }, [1000, 4])];
    expect([...together(two, "sum")]).toEqual([
      [0, 1],
      [1000, 6],
    ]);
    expect([...together(two, "mean")]).toEqual([
      [0, 1],
      [1000, 3],
    ]);
  });

  it("stand on each other when stacked, and keep what was measured", () => {
    const { columns, values } = columnsOf([line([0, 1], [1000, 2]), line([0, 3])], 1000, true);
    expect(columns).toEqual([
      [1, 2],
      [4, null],
    ]);
    expect(values).toEqual([
      [1, 2],
      [3, null],
    ]);
  });

  it("have a gap where steps are missing", () => {
    const { times, columns } = columnsOf([line([0, 1], [1000, 1], [9000, 1])], 1000, false);
    expect(times).toEqual([0, 1, 2, 9]);
    expect(columns[0]).toEqual([1, 1, null, 1]);
  });

  it("have no gap where points come less often than steps", () => {
    const { times } = columnsOf([line([0, 1], [5000, 1], [10000, 1], [15000, 1])], 1000, false);
    expect(times).toEqual([0, 5, 10, 15]);
  });

  it("take a step that fits the range", () => {
    expect([60, 300, 900, 3600, 86400, 1e9].map((s) => stepSeconds(s))).toEqual([
      10, 10, 10, 15, 300, 3333334,
    ]);
  });

  it("have a scale whose top and half can be written", () => {
    expect([0.9, 1, 2.81, 740e6].map((v) => scaleTop(v))).toEqual([1, 1, 3, 800e6]);
    expect([768 * 2 ** 30, 900, 1023 * 1024].map((v) => scaleTop(v, true))).toEqual([
      800 * 2 ** 30,
      1024,
      1024 * 1024,
    ]);
    expect(scaleTop(0)).toBe(1);
    expect(scaleTop(Number.NaN)).toBe(1);
  });
});

describe("panels", () => {
  it("leave away the lines of readings that a host does not have", () => {
    const pressure = PANELS.find((p) => p.id === "pressure") as (typeof PANELS)[0];
    const readings = new Map([
      ["host_pressure_ratio", [series({ node: "a", resource: "io", stalled: "some" }, [0, 0.5])]],
    ]);
    expect(linesOf(pressure, readings).map((l) => l.label)).toEqual(["io"]);
    expect(linesOf(pressure, new Map())).toEqual([]);
  });
});
