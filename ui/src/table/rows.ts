// SPDX-License-Identifier: Apache-2.0
// The top table's rows: what each function adds up to.

import { type Func, SMALL, type Top } from "../api/profile";
import type { Tree } from "../flame/tree";

export interface Row {
  func: Func;
  self: number;
  total: number;
  baseSelf: number; // 0 unless of a diff
  baseTotal: number;
}

/**
 * Adds up a tree by function, below a node of it. A function that calls itself counts once a
 * stack: its total is that of its outermost frames.
 */
export function rowsOf(tree: Tree, below = 0): Row[] {
  const rows: Row[] = tree.functions.map((func) => ({
    func,
    self: 0,
    total: 0,
    baseSelf: 0,
    baseTotal: 0,
  }));
  const inside = new Int32Array(rows.length); // by function: end of its outermost open frame
  const seen = new Uint8Array(rows.length);
  for (let i = below; i < (tree.end[below] ?? 0); i++) {
    const f = tree.fn[i];
    if (f < 0) continue;
    seen[f] = 1;
    rows[f].self += tree.self[i];
    if (tree.baseSelf) rows[f].baseSelf += tree.baseSelf[i];
    if (i < inside[f]) continue;
    inside[f] = tree.end[i];
    rows[f].total += tree.value[i];
    if (tree.baseValue) rows[f].baseTotal += tree.baseValue[i];
  }
  return rows.filter((_, f) => seen[f] === 1);
}

/** Whether nothing below a node was put together, so that what is added up there is exact. */
export function isWhole(tree: Tree, below = 0): boolean {
  return !tree.fn.subarray(below, tree.end[below] ?? 0).includes(SMALL);
}

export interface ModuleSum {
  module: string;
  realm: string;
  self: number;
}

/** Adds up the self values of rows by module, the greatest first. */
export function selfByModule(rows: Row[]): ModuleSum[] {
  const sums = new Map<string, ModuleSum>();
  for (const { func, self } of rows) {
    if (self === 0) continue;
    const { module, realm } = func;
    const key = `${module}\0${realm}`;
    sums.set(key, { module, realm, self: self + (sums.get(key)?.self ?? 0) });
  }
  return [...sums.values()].sort((a, b) => b.self - a.self);
}

/**
 * The total of the functions of a name, or null where rows cannot tell: a stack that has two
 * functions of that name, of two modules say, is in the totals of both.
 */
export function totalOf(rows: Row[], name: string): number | null {
  const named = rows.filter((r) => r.func.name === name);
  return named.length === 1 ? named[0].total : null;
}

export function rowsOfTop(top: Top): Row[] {
  return top.rows.map(({ self, total, ...func }) => ({
    func,
    self,
    total,
    baseSelf: 0,
    baseTotal: 0,
  }));
}

export type Column = "self" | "total" | "name" | "change";

/** Sorts rows: numbers from the greatest, names from A; ascending turns it over. */
export function sortRows(rows: Row[], by: Column, reverse: boolean, totals: Totals): Row[] {
  const sign = reverse ? -1 : 1;
  const order: Record<Column, (a: Row, b: Row) => number> = {
    self: (a, b) => b.self - a.self || b.total - a.total,
    total: (a, b) => b.total - a.total || b.self - a.self,
    name: (a, b) => a.func.name.localeCompare(b.func.name),
    change: (a, b) => Math.abs(change(b, totals)) - Math.abs(change(a, totals)),
  };
  return rows.toSorted((a, b) => sign * order[by](a, b));
}

export interface Totals {
  total: number;
  baseTotal: number;
}

/** By how much a function's share of the whole grew, total to total. */
export function change(row: Row, { total, baseTotal }: Totals): number {
  return share(row.total, total) - share(row.baseTotal, baseTotal);
}

function share(part: number, all: number): number {
  return all > 0 ? part / all : 0;
}
