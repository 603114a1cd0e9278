// SPDX-License-Identifier: Apache-2.0
// How numbers are written. Every function answers for any number, also NaN and infinities.

const SI = ["", "k", "M", "G", "T", "P"];
const IEC = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** Three significant digits, without an exponent; whole numbers without a fraction. */
export function digits(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 99.95 || Number.isInteger(value)) return value.toFixed(0);
  if (size >= 9.995) return value.toFixed(1);
  if (size >= 0.01) return value.toFixed(2);
  return value.toPrecision(2).includes("e") ? value.toFixed(6) : value.toPrecision(2);
}

/** Text as an axis has it: without zeros that say nothing. */
export function tidy(text: string): string {
  return text.replace(/(\.\d*?)0+(?!\d)/, "$1").replace(/\.(?!\d)/, "");
}

function scaled(value: number, step: number, units: string[], of = ""): string {
  let unit = 0;
  // 999.5 and more would be written with four digits.
  while (Math.abs(value) >= step - 0.5 && unit < units.length - 1) {
    value /= step;
    unit++;
  }
  return `${digits(value)}\u202f${units[unit]}${of}`.trim();
}

/** 1234567 -> "1.23 M". */
export function count(value: number): string {
  return Number.isFinite(value) ? scaled(value, 1000, SI) : "–";
}

/** A whole number with thin separators: 1234567 -> "1 234 567". */
export function whole(value: number): string {
  if (!Number.isFinite(value)) return "–";
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/** A number of bytes: 1536 -> "1.5 KiB". */
export function bytes(value: number): string {
  return Number.isFinite(value) ? scaled(value, 1024, IEC) : "–";
}

/** A time in nanoseconds: ns, us, ms, s, then minutes, hours and days. */
export function nanoseconds(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size < 999.5) return `${digits(value)}\u202fns`;
  if (size < 999.5e3) return `${digits(value / 1e3)}\u202fµs`;
  if (size < 999.5e6) return `${digits(value / 1e6)}\u202fms`;
  const s = value / 1e9;
  if (Math.abs(s) < 120) return `${digits(s)}\u202fs`;
  if (Math.abs(s) < 7200) return `${digits(s / 60)}\u202fmin`;
  if (Math.abs(s) < 172800) return `${digits(s / 3600)}\u202fh`;
  return `${digits(s / 86400)}\u202fd`;
}

/** A share of a whole, as a percentage: 0.0213 -> "2.1 %". */
export function percent(part: number, all = 1): string {
  const share = all === 0 ? 0 : (100 * part) / all;
  if (!Number.isFinite(share)) return "–";
  if (share === 0) return "0\u202f%";
  const size = Math.abs(share);
  if (size > 0 && size < 0.01) return share > 0 ? "<0.01\u202f%" : ">−0.01\u202f%";
  const text = size < 1 ? share.toFixed(2) : size < 99.95 ? share.toFixed(1) : share.toFixed(0);
  return `${text}\u202f%`;
}

/** A change of shares in percentage points, always with its sign. */
export function points(change: number): string {
  if (!Number.isFinite(change)) return "–";
  const sign = change > 0 ? "+" : change < 0 ? "−" : "±";
  return `${sign}${Math.abs(100 * change).toFixed(2)}\u202fpp`;
}

/** A value of a sample type in its unit, as the API names it. */
export function value(amount: number, unit: string): string {
  switch (unit) {
    case "nanoseconds":
      return nanoseconds(amount);
    case "bytes":
      return bytes(amount);
    case "millijoules":
      return scaled(amount / 1000, 1000, SI, "J");
    case "count":
      return count(amount);
    default:
      return `${count(amount)} ${unit}`;
  }
}

/** A unit that a whole column is written in, so that its numbers can be compared at a glance. */
export interface ColumnUnit {
  name: string;
  write(value: number): string;
}

const TIMES: [number, string][] = [
  [86400e9, "d"],
  [3600e9, "h"],
  [60e9, "min"],
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
  [1, "ns"],
];

/** The unit for a column of a sample type's values of which most is the greatest. */
export function columnUnit(most: number, unit: string): ColumnUnit {
  const [size, name] = unitFor(most, unit);
  const whole_ = size === 1;
  return {
    name,
    write(value) {
      if (whole_) return whole(value);
      if (value > 0 && value / size < 0.005) return "<0.01";
      const [int, fraction] = (value / size).toFixed(2).split(".");
      return `${whole(Number(int))}.${fraction}`;
    },
  };
}

function unitFor(most: number, unit: string): [number, string] {
  if (unit === "nanoseconds") return TIMES.find(([size]) => most >= 2 * size) ?? [1, "ns"];
  if (unit === "millijoules")
    return most >= 2e6 ? [1e6, "kJ"] : most >= 2e3 ? [1e3, "J"] : [1, "mJ"];
  if (most >= 1e7) return [1e6, "M"];
  return [1, unit === "count" ? "" : unit];
}

/**
 * What a value comes to over the range it was seen in: time per time is a number of cores
 * (or of threads that wait), energy per time is power, anything else a rate.
 */
export function perRange(amount: number, unit: string, type: string, seconds: number): string {
  if (!(seconds > 0)) return "";
  const rate = amount / seconds;
  if (unit === "nanoseconds") return `${digits(rate / 1e9)} ${parallel(type)}`;
  if (unit === "millijoules") return scaled(rate / 1000, 1000, SI, "W");
  return `${count(rate)}/s`;
}

/** What a second of the type per second is called. */
export function parallel(type: string): string {
  if (type === "cpu") return "cores";
  if (type.startsWith("device")) return "devices";
  return "threads";
}

/** A point in time as the reader's clock shows it; the date only when it is not today. */
export function clock(ms: number, now = Date.now()): string {
  const at = new Date(ms);
  if (Number.isNaN(at.getTime())) return "–";
  const time = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  if (at.toDateString() === new Date(now).toDateString()) return time;
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${time}`;
}

/** How long ago: "12 s ago". */
export function ago(ms: number, now = Date.now()): string {
  if (!Number.isFinite(ms)) return "never";
  const s = Math.max(0, (now - ms) / 1000);
  if (s < 1.5) return "just now";
  if (s < 90) return `${Math.round(s)} s ago`;
  if (s < 90 * 60) return `${Math.round(s / 60)} min ago`;
  if (s < 36 * 3600) return `${Math.round(s / 3600)} h ago`;
  return `${Math.round(s / 86400)} days ago`;
}

function two(n: number): string {
  return n.toString().padStart(2, "0");
}
