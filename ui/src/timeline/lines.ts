// SPDX-License-Identifier: Apache-2.0
// From the answers' series to the columns that a chart draws.

import type { Series } from "../api/answers";

export interface Line {
  label: string;
  colour: string;
  points: Map<number, number>; // by Unix milliseconds
}

/** One line out of several series, point by point. */
export function together(series: Series[], how: "sum" | "mean"): Map<number, number> {
  const sums = new Map<number, { sum: number; n: number }>();
  for (const s of series) {
    for (let i = 0; i < s.times.length; i++) {
      const at = sums.get(s.times[i]);
      if (at) {
        at.sum += s.values[i];
        at.n++;
      } else {
        sums.set(s.times[i], { sum: s.values[i], n: 1 });
      }
    }
  }
  const out = new Map<number, number>();
  for (const [t, { sum, n }] of sums) out.set(t, how === "mean" ? sum / n : sum);
  return out;
}

export interface Columns {
  times: number[]; // Unix seconds, ascending
  columns: (number | null)[][]; // as drawn: stacked where asked for
  values: (number | null)[][]; // as measured
}

/**
 * Sets lines side by side. Where steps are missing there is a gap, not a line drawn across it;
 * stacked, each line stands on those before it.
 */
export function columnsOf(lines: Line[], stepMs: number, stacked: boolean): Columns {
  const all = new Set<number>();
  for (const l of lines) for (const t of l.points.keys()) all.add(t);
  const times = withGaps(
    [...all].sort((a, b) => a - b),
    stepMs,
  );
  const values = lines.map((l) => times.map((t) => l.points.get(t) ?? null));
  if (!stacked) return { times: times.map((t) => t / 1000), columns: values, values };

  const height = new Float64Array(times.length);
  const columns = values.map((column) =>
    column.map((v, i) => {
      if (v === null) return null;
      height[i] += v;
      return height[i];
    }),
  );
  return { times: times.map((t) => t / 1000), columns, values };
}

/**
 * Adds a time without a point where points are missing: where the next is much further off than
 * points mostly are. They may come less often than steps.
 */
function withGaps(times: number[], stepMs: number): number[] {
  const apart = times.slice(1).map((t, i) => t - times[i]);
  const mostly = apart.sort((a, b) => a - b)[Math.floor((apart.length - 1) / 2)] ?? stepMs;
  const usual = Math.max(stepMs, mostly);
  const out: number[] = [];
  for (let i = 0; i < times.length; i++) {
    if (i > 0 && times[i] - times[i - 1] > 2.5 * usual) out.push(times[i - 1] + usual);
    out.push(times[i]);
  }
  return out;
}

const DECIMAL = [1, 2, 3, 4, 5, 6, 8, 10];
const BINARY = [
  1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 100, 128, 160, 200, 256, 320, 400, 512,
  600, 800, 1024,
];

/** The top of a scale: a number whose half can be written too. */
export function scaleTop(most: number, binary = false): number {
  if (!(most > 0)) return 1;
  const base = binary ? 1024 : 10;
  const unit = base ** Math.floor(Math.log(most) / Math.log(base));
  const steps = binary ? BINARY : DECIMAL;
  return unit * (steps.find((s) => s * unit >= most) ?? base);
}

/**
 * The step asked for: about one point for two pixels. It is not shorter than readings are apart,
 * or the nodes that happen to have one in a step would pass for all of them.
 */
export function stepSeconds(rangeSeconds: number, pixels = 300): number {
  const least = rangeSeconds / pixels;
  const nice = [10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];
  return nice.find((s) => s >= least) ?? Math.ceil(least);
}
