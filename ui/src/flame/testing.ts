// SPDX-License-Identifier: Apache-2.0
// Trees for tests, written as folded text: one stack a line, outermost first, value last.

import type { Flamegraph, Func } from "../api/profile";
import { fromFlamegraph, nameOf, type Tree } from "./tree";

interface Entry {
  value: number;
  self: number;
  base: number;
  baseSelf: number;
  kids: Map<string, Entry>;
}

/** A flame graph out of folded stacks; "a/mod" is function a of module mod, "…" small frames. */
export function graphOf(folded: string, base?: string): Flamegraph {
  const root = entry();
  add(root, folded, "value", "self");
  if (base !== undefined) add(root, base, "base", "baseSelf");
  const names: string[] = [];
  const rows: [fn: number, depth: number, Entry][] = [];
  const walk = (e: Entry, depth: number) => {
    for (const [name, kid] of e.kids) {
      if (name !== "…" && !names.includes(name)) names.push(name);
      rows.push([names.indexOf(name), depth, kid]);
      walk(kid, depth + 1);
    }
  };
  walk(root, 0);
  const column = (pick: (e: Entry) => number) => Float64Array.from(rows, ([, , e]) => pick(e));
  return {
    type: "cpu",
    unit: "nanoseconds",
    total: root.value,
    functions: names.map(funcOf),
    function: Float64Array.from(rows, ([fn]) => fn),
    depth: Float64Array.from(rows, ([, depth]) => depth),
    value: column((e) => e.value),
    self: column((e) => e.self),
    cut: null,
    losses: [],
    from: 0,
    to: 1000,
    base:
      base === undefined
        ? null
        : { total: root.base, value: column((e) => e.base), self: column((e) => e.baseSelf) },
  };
}

export function treeOf(folded: string, base?: string): Tree {
  return fromFlamegraph(graphOf(folded, base));
}

/** A tree as text: a line a node, indented, with value and self. */
export function show(tree: Tree): string {
  const lines: string[] = [];
  for (let i = 0; i < tree.size; i++) {
    const base = tree.baseValue ? ` was ${tree.baseValue[i]}` : "";
    lines.push(
      `${" ".repeat(tree.depth[i])}${nameOf(tree, i)} ${tree.value[i]} ${tree.self[i]}${base}`,
    );
  }
  return lines.join("\n");
}

/** The node at a path of names. */
export function at(tree: Tree, ...path: string[]): number {
  let node = 0;
  for (const name of path) {
    let found = -1;
    for (let i = node + 1; i < tree.end[node]; i = tree.end[i]) {
      if (nameOf(tree, i) === name) found = i;
    }
    if (found < 0) throw new Error(`no ${name} in ${path.join(";")}`);
    node = found;
  }
  return node;
}

function entry(): Entry {
  return { value: 0, self: 0, base: 0, baseSelf: 0, kids: new Map() };
}

function add(
  root: Entry,
  folded: string,
  value: "value" | "base",
  self: "self" | "baseSelf",
): void {
  for (const line of folded.split("\n").filter((l) => l.trim() !== "")) {
    const [stack, amount] = line.trim().split(" ");
    let e = root;
    e[value] += Number(amount);
    for (const name of stack.split(";")) {
      const kid = e.kids.get(name) ?? entry();
      e.kids.set(name, kid);
      kid[value] += Number(amount);
      e = kid;
    }
    e[self] += Number(amount);
  }
}

function funcOf(name: string): Func {
  const [fn, module = "prog"] = name.split("/");
  return { name: fn, module, file: "", realm: module === "[kernel]" ? "kernel" : "user" };
}
