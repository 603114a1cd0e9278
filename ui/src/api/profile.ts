// SPDX-License-Identifier: Apache-2.0
// Flame graphs and top tables as the server answers them.

import * as d from "./decode";

export type Realm = "user" | "kernel" | "synthetic";

export interface Func {
  name: string;
  module: string;
  file: string;
  realm: string;
}

export interface Loss {
  node: string;
  place: string;
  count: number;
}

/** What the server put together because the answer was bounded. */
export interface Cut {
  nodes: number;
  value: number;
}

/** A tree in preorder, in columns; see docs/http-api.md. */
export interface Flamegraph {
  type: string;
  unit: string;
  total: number;
  functions: Func[];
  function: Float64Array;
  depth: Float64Array;
  value: Float64Array;
  self: Float64Array;
  cut: Cut | null;
  losses: Loss[];
  from: number; // Unix milliseconds
  to: number;
  base: Base | null; // of a diff alone
}

export interface Base {
  total: number;
  value: Float64Array;
  self: Float64Array;
}

export interface TopRow extends Func {
  self: number;
  total: number;
}

export interface Top {
  type: string;
  unit: string;
  total: number;
  rows: TopRow[];
}

/** The function column's word for "the small frames of its parent, put together". */
export const SMALL = -1;

function func(v: unknown, where: string): Func {
  const o = d.object(v, where);
  return {
    name: d.string(o.name, `${where}.name`),
    module: d.optional(o.module, `${where}.module`, d.string, ""),
    file: d.optional(o.file, `${where}.file`, d.string, ""),
    realm: d.optional(o.realm, `${where}.realm`, d.string, "user"),
  };
}

function loss(v: unknown, where: string): Loss {
  const o = d.object(v, where);
  return {
    node: d.optional(o.node, `${where}.node`, d.string, ""),
    place: d.string(o.place, `${where}.place`),
    count: d.number(o.count, `${where}.count`),
  };
}

function cut(v: unknown, where: string): Cut | null {
  if (v === null || v === undefined) return null;
  const o = d.object(v, where);
  return {
    nodes: d.number(o.nodes, `${where}.nodes`),
    value: d.number(o.value, `${where}.value`),
  };
}

function time(v: unknown, where: string): number {
  const ms = Date.parse(d.string(v, where));
  if (Number.isNaN(ms)) throw new d.DecodeError(where, "a time as RFC 3339 writes it", v);
  return ms;
}

/**
 * Reads a flame graph and checks that its columns are a tree: lengths agree, every function
 * exists, no depth skips a level, and no frame is lighter than what is above it.
 */
export function flamegraph(v: unknown): Flamegraph {
  const where = "profile";
  const o = d.object(v, where);
  const functions = d.list(o.functions, `${where}.functions`, func);
  const fg: Flamegraph = {
    type: d.string(o.type, `${where}.type`),
    unit: d.string(o.unit, `${where}.unit`),
    total: d.number(o.total, `${where}.total`),
    functions,
    function: d.column(o.function ?? [], `${where}.function`, SMALL),
    depth: d.column(o.depth ?? [], `${where}.depth`, 0),
    value: d.column(o.value ?? [], `${where}.value`, 0),
    self: d.column(o.self ?? [], `${where}.self`, 0),
    cut: cut(o.cut, `${where}.cut`),
    losses: d.list(o.losses, `${where}.losses`, loss),
    from: time(o.from, `${where}.from`),
    to: time(o.to, `${where}.to`),
    base: null,
  };
  if (o.base_value !== undefined) {
    fg.base = {
      total: d.number(o.base_total, `${where}.base_total`),
      value: d.column(o.base_value ?? [], `${where}.base_value`, 0),
      self: d.column(o.base_self ?? [], `${where}.base_self`, 0),
    };
  }
  checkLengths(fg, where);
  checkTree(fg, where);
  checkSums(fg.value, fg.self, fg.depth, `${where}.value`);
  if (fg.base) checkSums(fg.base.value, fg.base.self, fg.depth, `${where}.base_value`);
  return fg;
}

function checkLengths(fg: Flamegraph, where: string): void {
  const n = fg.function.length;
  const columns: [string, Float64Array][] = [
    ["depth", fg.depth],
    ["value", fg.value],
    ["self", fg.self],
  ];
  if (fg.base) columns.push(["base_value", fg.base.value], ["base_self", fg.base.self]);
  for (const [name, c] of columns) {
    if (c.length !== n) {
      throw new d.DecodeError(`${where}.${name}`, `${n} rows, as many as function`, c.length);
    }
  }
}

function checkTree(fg: Flamegraph, where: string): void {
  let last = -1;
  for (let i = 0; i < fg.function.length; i++) {
    const f = fg.function[i];
    if (!Number.isInteger(f) || f >= fg.functions.length) {
      const want = `an index below ${fg.functions.length}`;
      throw new d.DecodeError(`${where}.function[${i}]`, want, f);
    }
    const depth = fg.depth[i];
    if (!Number.isInteger(depth) || depth > last + 1) {
      throw new d.DecodeError(`${where}.depth[${i}]`, `a depth of at most ${last + 1}`, depth);
    }
    last = depth;
  }
}

/** Doubles hold whole numbers to 2^53; beyond, sums may differ in the last digits. */
const ROUNDING = 1 + 1e-9;

function checkSums(
  value: Float64Array,
  self: Float64Array,
  depth: Float64Array,
  where: string,
): void {
  const above: number[] = []; // by depth: what the children of the open frame add up to
  const open: number[] = []; // by depth: the open frame
  const close = (to: number) => {
    while (open.length > to) {
      const i = open.pop() as number;
      const sum = (above.pop() as number) + self[i];
      if (sum > value[i] * ROUNDING) {
        throw new d.DecodeError(
          `${where}[${i}]`,
          `at least ${sum}, its self and children`,
          value[i],
        );
      }
    }
  };
  for (let i = 0; i < value.length; i++) {
    close(depth[i]);
    if (depth[i] > 0) above[depth[i] - 1] += value[i];
    open.push(i);
    above.push(0);
  }
  close(0);
}

export function top(v: unknown): Top {
  const o = d.object(v, "top");
  return {
    type: d.string(o.type, "top.type"),
    unit: d.string(o.unit, "top.unit"),
    total: d.number(o.total, "top.total"),
    rows: d.list(o.rows, "top.rows", (x, where) => {
      const row = d.object(x, where);
      return {
        ...func({ ...row, name: row.function }, where),
        self: d.number(row.self, `${where}.self`),
        total: d.number(row.total, `${where}.total`),
      };
    }),
  };
}
