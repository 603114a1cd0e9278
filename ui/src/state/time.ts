// SPDX-License-Identifier: Apache-2.0
// Times as the API writes them: "now", "now-5m", RFC 3339, Unix seconds.

const UNITS: Record<string, number> = { s: 1e3, m: 60e3, h: 3600e3, d: 86400e3, w: 7 * 86400e3 };

/** Unix milliseconds of a time, or null when it is none. */
export function parseTime(text: string, now: number): number | null {
  const t = text.trim();
  if (t === "now") return now;
  const relative = /^now-((?:\d+(?:\.\d+)?[smhdw])+)$/.exec(t);
  if (relative) return now - durationMs(relative[1]);
  if (/^\d+(\.\d+)?$/.test(t)) return Number(t) * 1000;
  if (!/^\d{4}-\d{2}-\d{2}T/.test(t)) return null;
  const ms = Date.parse(t);
  return Number.isNaN(ms) ? null : ms;
}

/** Milliseconds of a duration such as 90s, 1h30m; NaN when it is none. */
export function durationMs(text: string): number {
  if (!/^(\d+(\.\d+)?[smhdw])+$/.test(text)) return Number.NaN;
  let sum = 0;
  for (const [, n, unit] of text.matchAll(/(\d+(?:\.\d+)?)([smhdw])/g))
    sum += Number(n) * UNITS[unit];
  return sum;
}

/** A duration in the greatest unit that leaves nothing over: 5400000 -> "90m". */
export function formatDuration(ms: number): string {
  for (const unit of ["d", "h", "m"]) {
    if (ms >= UNITS[unit] && ms % UNITS[unit] === 0) return `${ms / UNITS[unit]}${unit}`;
  }
  return `${Math.max(1, Math.round(ms / 1000))}s`;
}

export function isRelative(text: string): boolean {
  return text.startsWith("now");
}

/** RFC 3339 in UTC, whole seconds. */
export function formatTime(ms: number): string {
  return new Date(Math.round(ms / 1000) * 1000).toISOString().replace(".000Z", "Z");
}

export interface Range {
  from: string;
  to: string;
}

/** The ends of a range in Unix milliseconds; one that is no time takes the default's place. */
export function ends(range: Range, now: number): { from: number; to: number } {
  const to = parseTime(range.to, now) ?? now;
  const from = parseTime(range.from, now) ?? to - 15 * 60e3;
  return { from, to };
}

/** Why a range is none, or "". */
export function rangeError(range: Range, now: number): string {
  const from = parseTime(range.from, now);
  const to = parseTime(range.to, now);
  const form = "write now-15m, 2026-01-31T12:00:00Z or Unix seconds";
  if (from === null) return `from: ${JSON.stringify(range.from)} is no time: ${form}`;
  if (to === null) return `to: ${JSON.stringify(range.to)} is no time: ${form}`;
  if (from >= to) return "the range ends before it begins";
  return "";
}

/** The range of the same length that ends where this one begins. */
export function rangeBefore(range: Range, now: number): Range {
  const { from, to } = ends(range, now);
  if (range.to === "now" && isRelative(range.from)) {
    const length = formatDuration(to - from);
    return { from: `now-${formatDuration(2 * (to - from))}`, to: `now-${length}` };
  }
  return { from: formatTime(from - (to - from)), to: formatTime(from) };
}

/** The range moved by a part of its length, but not past now. */
export function shifted(range: Range, by: number, now: number): Range {
  const { from, to } = ends(range, now);
  const step = Math.min(by * (to - from), now - to);
  return { from: formatTime(from + step), to: formatTime(to + step) };
}

/** Twice the range about its middle, but not past now. */
export function widened(range: Range, now: number): Range {
  const { from, to } = ends(range, now);
  const length = to - from;
  if (range.to === "now" && isRelative(range.from)) {
    return { from: `now-${formatDuration(2 * length)}`, to: "now" };
  }
  const end = Math.min(now, to + length / 2);
  return { from: formatTime(end - 2 * length), to: formatTime(end) };
}
