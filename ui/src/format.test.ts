// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import * as format from "./format";

const plain = (text: string) => text.replaceAll("\u202f", " ");

describe("numbers are written in units that suit them", () => {
  it.each<[string, string]>([
    [format.nanoseconds(0), "0 ns"],
    [format.nanoseconds(999.6), "1.00 µs"],
    [format.nanoseconds(1500), "1.50 µs"],
    [format.nanoseconds(52.6e6), "52.6 ms"],
    [format.nanoseconds(1e9), "1 s"],
    [format.nanoseconds(119e9), "119 s"],
    [format.nanoseconds(120e9), "2 min"],
    [format.nanoseconds(2 * 3600e9), "2 h"],
    [format.nanoseconds(-3e9), "-3 s"],
    [format.bytes(1536), "1.50 KiB"],
    [format.bytes(1023), "1023 B"],
    [format.bytes(256 * 2 ** 30), "256 GiB"],
    [format.count(999.7), "1.00 k"],
    [format.count(1234567), "1.23 M"],
    [format.whole(1234567.4), "1 234 567"],
    [format.value(2500, "millijoules"), "2.50 J"],
    [format.value(3, "count"), "3"],
    [format.value(3, "sheep"), "3 sheep"],
    [format.perRange(120e9, "nanoseconds", "cpu", 60), "2 cores"],
    [format.perRange(120e9, "nanoseconds", "offcpu", 60), "2 threads"],
    [format.perRange(600e3, "millijoules", "device_energy", 60), "10 W"],
    [format.perRange(60, "count", "ioctl", 60), "1/s"],
    [format.perRange(60, "count", "ioctl", 0), ""],
    [format.percent(0.0213), "2.1 %"],
    [format.percent(1, 3), "33.3 %"],
    [format.percent(1), "100 %"],
    [format.percent(0), "0 %"],
    [format.percent(1, 1e9), "<0.01 %"],
    [format.percent(1, 0), "0 %"],
    [format.points(0.0123), "+1.23 pp"],
    [format.points(-0.0123), "−1.23 pp"],
    [format.tidy("50.0 %"), "50 %"],
    [format.tidy("1.50 cores"), "1.5 cores"],
    [format.tidy("100 GiB"), "100 GiB"],
    [format.ago(1000, 1500), "just now"],
    [format.ago(0, 600e3), "10 min ago"],
    [format.ago(Number.NaN), "never"],
  ])("%s", (got, want) => expect(plain(got)).toBe(want));

  it.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])("%s is a dash", (v) => {
    for (const f of [
      format.digits,
      format.count,
      format.bytes,
      format.nanoseconds,
      format.whole,
      format.points,
    ]) {
      expect(f(v)).toBe("–");
    }
  });

  it("a column is written in one unit, to the same place", () => {
    const column = format.columnUnit(300e9, "nanoseconds");
    expect(column.name).toBe("min");
    expect([300e9, 3e9, 1e6, 0].map((v) => plain(column.write(v)))).toEqual([
      "5.00",
      "0.05",
      "<0.01",
      "0.00",
    ]);
    expect(plain(format.columnUnit(12345, "count").write(12345))).toBe("12 345");
    expect(format.columnUnit(1500, "nanoseconds").name).toBe("ns");
  });

  it("a clock has the date when it is another day", () => {
    const noon = new Date(2026, 11, 1, 12, 0, 5).getTime();
    expect(format.clock(noon, noon)).toBe("12:00:05");
    expect(format.clock(noon, noon + 86400e3)).toBe("2026-12-01 12:00:05");
    expect(format.clock(Number.NaN)).toBe("–");
  });
});
