// SPDX-License-Identifier: Apache-2.0
// Nodes, captures, series, labels and types as the server answers them.

import * as d from "./decode";

export interface Capability {
  name: string;
  available: boolean;
  reason: string;
}

export interface Device {
  kind: string;
  id: string;
  model: string;
}

export interface Health {
  status: string;
  message: string;
  spooledBytes: number;
  spooledBatches: number;
  rssBytes: number;
  cpuSeconds: number;
  samples: number;
}

export interface Node {
  name: string;
  bootId: string;
  agentVersion: string;
  connected: boolean;
  server: string;
  firstSeen: string;
  lastHeartbeat: string;
  capabilities: Capability[];
  devices: Device[];
  host: [string, string][];
  health: Health;
  losses: { place: string; count: number }[];
}

export interface Artifact {
  name: string;
  size: number;
  contentType: string;
}

export interface Target {
  node: string;
  pids: number[];
  state: string;
  message: string;
  updated: string;
  artifacts: Artifact[];
}

export interface Capture {
  id: string;
  kind: string;
  state: string;
  message: string;
  created: string;
  start: string;
  deadline: string;
  durationMs: number;
  hz: number;
  targets: Target[];
}

export interface Series {
  metric: string;
  labels: Record<string, string>;
  times: number[]; // Unix milliseconds, ascending
  values: number[];
}

export interface SampleType {
  name: string;
  unit: string;
}

const text = (o: d.Fields, key: string, where: string) =>
  d.optional(o[key], `${where}.${key}`, d.string, "");
const amount = (o: d.Fields, key: string, where: string) =>
  d.optional(o[key], `${where}.${key}`, d.number, 0);

function node(v: unknown, where: string): Node {
  const o = d.object(v, where);
  return {
    name: d.string(o.name, `${where}.name`),
    bootId: text(o, "boot_id", where),
    agentVersion: text(o, "agent_version", where),
    connected: d.optional(o.connected, `${where}.connected`, d.boolean, false),
    server: text(o, "server", where),
    firstSeen: text(o, "first_seen", where),
    lastHeartbeat: text(o, "last_heartbeat", where),
    capabilities: d.list(o.capabilities, `${where}.capabilities`, capability),
    devices: d.list(o.devices, `${where}.devices`, device),
    host: facts(o.host, `${where}.host`),
    health: health(o.health, `${where}.health`),
    losses: d.list(o.losses, `${where}.losses`, (x, w) => {
      const l = d.object(x, w);
      return { place: d.string(l.place, `${w}.place`), count: d.number(l.count, `${w}.count`) };
    }),
  };
}

function capability(v: unknown, where: string): Capability {
  const o = d.object(v, where);
  return {
    name: d.string(o.name, `${where}.name`),
    available: d.optional(o.available, `${where}.available`, d.boolean, false),
    reason: text(o, "reason", where),
  };
}

function device(v: unknown, where: string): Device {
  const o = d.object(v, where);
  return { kind: text(o, "kind", where), id: text(o, "id", where), model: text(o, "model", where) };
}

/** Facts about the host are open-ended: whatever the agent told, as text. */
function facts(v: unknown, where: string): [string, string][] {
  if (v === null || v === undefined) return [];
  return Object.entries(d.object(v, where)).map(([k, x]) => [
    k,
    typeof x === "string" ? x : JSON.stringify(x),
  ]);
}

function health(v: unknown, where: string): Health {
  const o = d.optional(v, where, d.object, {});
  return {
    status: text(o, "status", where) || "unknown",
    message: text(o, "message", where),
    spooledBytes: amount(o, "spooled_bytes", where),
    spooledBatches: amount(o, "spooled_batches", where),
    rssBytes: amount(o, "rss_bytes", where),
    cpuSeconds: amount(o, "cpu_seconds", where),
    samples: amount(o, "samples", where),
  };
}

function target(v: unknown, where: string): Target {
  const o = d.object(v, where);
  return {
    node: d.string(o.node, `${where}.node`),
    pids: d.list(o.pids, `${where}.pids`, d.number),
    state: d.string(o.state, `${where}.state`),
    message: text(o, "message", where),
    updated: text(o, "updated", where),
    artifacts: d.list(o.artifacts, `${where}.artifacts`, (x, w) => {
      const a = d.object(x, w);
      return {
        name: d.string(a.name, `${w}.name`),
        size: amount(a, "size", w),
        contentType: text(a, "content_type", w),
      };
    }),
  };
}

export function capture(v: unknown, where = "capture"): Capture {
  const o = d.object(v, where);
  return {
    id: d.string(o.id, `${where}.id`),
    kind: d.string(o.kind, `${where}.kind`),
    state: d.string(o.state, `${where}.state`),
    message: text(o, "message", where),
    created: text(o, "created", where),
    start: text(o, "start", where),
    deadline: text(o, "deadline", where),
    durationMs: amount(o, "duration_ms", where),
    hz: amount(o, "hz", where),
    targets: d.list(o.targets, `${where}.targets`, target),
  };
}

export function captures(v: unknown): Capture[] {
  return d.list(d.object(v, "answer").captures, "captures", capture);
}

export function nodes(v: unknown): Node[] {
  return d.list(d.object(v, "answer").nodes, "nodes", node);
}

export function types(v: unknown): SampleType[] {
  return d.list(d.object(v, "answer").types, "types", (x, where) => {
    const o = d.object(x, where);
    return { name: d.string(o.name, `${where}.name`), unit: text(o, "unit", where) };
  });
}

export function labels(v: unknown): string[] {
  return d.list(d.object(v, "answer").labels, "labels", d.string);
}

export function values(v: unknown): { values: string[]; cut: boolean } {
  const o = d.object(v, "answer");
  return {
    values: d.list(o.values, "values", d.string),
    cut: d.optional(o.cut, "cut", d.boolean, false),
  };
}

/** Series, and whether there were more than the server answers at once. */
export function series(v: unknown): { series: Series[]; cut: boolean } {
  const answer = d.object(v, "answer");
  const cut = d.optional(answer.cut, "cut", d.boolean, false);
  const series = d.list(answer.series, "series", (x, where) => {
    const o = d.object(x, where);
    const labels: Record<string, string> = {};
    for (const [k, l] of Object.entries(d.optional(o.labels, `${where}.labels`, d.object, {}))) {
      labels[k] = d.string(l, `${where}.labels.${k}`);
    }
    const out: Series = { metric: text(o, "metric", where), labels, times: [], values: [] };
    for (const [ms, value] of d.list(o.points, `${where}.points`, point)) {
      if (out.times.length > 0 && ms <= out.times[out.times.length - 1]) {
        throw new d.DecodeError(`${where}.points`, "times that ascend", ms);
      }
      out.times.push(ms);
      out.values.push(value);
    }
    return out;
  });
  return { series, cut };
}

function point(v: unknown, where: string): [number, number] {
  if (!Array.isArray(v) || v.length !== 2) throw new d.DecodeError(where, "[unix_ms, value]", v);
  return [d.number(v[0], `${where}[0]`), d.number(v[1], `${where}[1]`)];
}
