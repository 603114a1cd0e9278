// SPDX-License-Identifier: Apache-2.0
// Which of the host's readings are drawn, and how. The metrics are those of the agent's host
// collector; readings that a host does not have leave their lines away.

import type { Series } from "../api/answers";
import * as format from "../format";
import { type Line, together } from "./lines";

/** A line: the readings of a metric, some of them or all. */
interface Part {
  metric: string;
  where?: Record<string, string>; // labels that a reading must have
  label: string;
  colour: string; // a custom property of the style sheet
}

export interface Panel {
  id: string;
  title: string;
  help: string;
  parts: Part[];
  stacked?: boolean;
  most?: number; // the scale's top, where it is known
  binary?: boolean; // the scale goes in powers of 1024
  over: "mean" | "sum"; // what several nodes or devices come to
  format(value: number): string;
}

const mode = (mode: string, label: string, colour: string): Part => ({
  metric: "host_cpu_ratio",
  where: { mode },
  label,
  colour,
});

const pressure = (resource: string, stalled: string, label: string, colour: string): Part => ({
  metric: "host_pressure_ratio",
  where: { resource, stalled },
  label,
  colour,
});

const share = (v: number) => format.percent(v);
const perSecond = (v: number) => `${format.bytes(v)}/s`;

export const PANELS: Panel[] = [
  {
    id: "cpu",
    title: "CPU",
    help: "Share of all CPUs' time by mode; what is missing to 100 % was idle.",
    parts: [
      mode("user", "user", "--line-1"),
      mode("system", "system", "--line-2"),
      mode("iowait", "iowait", "--line-3"),
      mode("irq", "irq", "--line-4"),
      mode("steal", "steal", "--line-5"),
    ],
    stacked: true,
    most: 1,
    over: "mean",
    format: share,
  },
  {
    id: "memory",
    title: "Memory",
    help: "Used is what could not be had without swapping.",
    parts: [
      { metric: "host_memory_used_bytes", label: "used", colour: "--line-1" },
      { metric: "host_memory_cached_bytes", label: "cached", colour: "--line-3" },
      { metric: "host_memory_total_bytes", label: "total", colour: "--line-0" },
    ],
    binary: true,
    over: "sum",
    format: format.bytes,
  },
  {
    id: "pressure",
    title: "Pressure",
    help: "Share of time in which some (full: all) tasks stood still for want of a resource.",
    parts: [
      pressure("cpu", "some", "cpu", "--line-1"),
      pressure("memory", "some", "mem", "--line-4"),
      pressure("memory", "full", "mem full", "--line-5"),
      pressure("io", "some", "io", "--line-3"),
      pressure("io", "full", "io full", "--line-2"),
    ],
    over: "mean",
    format: share,
  },
  {
    id: "network",
    title: "Network",
    help: "All devices but loopback.",
    parts: [
      { metric: "host_network_receive_bytes_per_second", label: "receive", colour: "--line-1" },
      { metric: "host_network_transmit_bytes_per_second", label: "transmit", colour: "--line-2" },
    ],
    binary: true,
    over: "sum",
    format: perSecond,
  },
  {
    id: "disk",
    title: "Disk",
    help: "All whole disks.",
    parts: [
      { metric: "host_disk_read_bytes_per_second", label: "read", colour: "--line-1" },
      { metric: "host_disk_written_bytes_per_second", label: "write", colour: "--line-2" },
    ],
    binary: true,
    over: "sum",
    format: perSecond,
  },
];

/** Every metric that the panels draw, each once. */
export const METRICS = [...new Set(PANELS.flatMap((p) => p.parts.map((part) => part.metric)))];

/** The lines of a panel out of the answers, by metric. */
export function linesOf(panel: Panel, answers: ReadonlyMap<string, Series[]>): Line[] {
  const lines: Line[] = [];
  for (const part of panel.parts) {
    const all = answers.get(part.metric) ?? [];
    const own = all.filter((s) =>
      Object.entries(part.where ?? {}).every(([k, v]) => s.labels[k] === v),
    );
    if (own.length === 0) continue;
    lines.push({ label: part.label, colour: part.colour, points: together(own, panel.over) });
  }
  return lines;
}
