// SPDX-License-Identifier: Apache-2.0
// A flame graph in memory: a tree in preorder, in typed arrays, with one root above all. Everything
// that drawing asks for on each frame is worked out once, here.

import { type Flamegraph, type Func, SMALL } from "../api/profile";
import { hash, mix } from "./hash";

/** The function of node 0, which stands for everything. */
export const ROOT = -2;

export interface Tree {
  readonly functions: Func[];
  readonly type: string;
  readonly unit: string;
  readonly total: number;
  readonly baseTotal: number; // 0 unless a diff
  readonly size: number;
  readonly depths: number; // how many rows, the root's with them
  readonly fn: Int32Array; // index into functions, SMALL or ROOT
  readonly depth: Int32Array; // the root's is 0
  readonly parent: Int32Array; // the root's is -1
  readonly end: Int32Array; // the first node behind the subtree
  readonly value: Float64Array;
  readonly self: Float64Array;
  readonly baseValue: Float64Array | null;
  readonly baseSelf: Float64Array | null;
  readonly start: Float64Array; // left edge, as a share of the whole: 0 to 1
  readonly width: Float64Array; // likewise
  readonly key: Uint32Array; // names the path to the node, whatever its place in another answer
}

/** Nodes in any order in which parents come first; node 0 is the root. */
export interface Nodes {
  fn: ArrayLike<number>;
  parent: ArrayLike<number>;
  value: ArrayLike<number>;
  self: ArrayLike<number>;
  baseValue?: ArrayLike<number>;
  baseSelf?: ArrayLike<number>;
}

export interface Words {
  functions: Func[];
  type: string;
  unit: string;
}

/** Makes the tree of an answer. */
export function fromFlamegraph(fg: Flamegraph): Tree {
  const n = fg.function.length;
  const fn = new Int32Array(n + 1);
  const parent = new Int32Array(n + 1);
  const open: number[] = [0];
  fn[0] = ROOT;
  parent[0] = -1;
  for (let i = 0; i < n; i++) {
    fn[i + 1] = fg.function[i];
    parent[i + 1] = open[fg.depth[i]];
    open[fg.depth[i] + 1] = i + 1;
  }
  const behind = (head: number, column: Float64Array) => {
    const out = new Float64Array(n + 1);
    out[0] = head;
    out.set(column, 1);
    return out;
  };
  return build(fg, {
    fn,
    parent,
    value: behind(fg.total, fg.value),
    self: behind(0, fg.self),
    baseValue: fg.base ? behind(fg.base.total, fg.base.value) : undefined,
    baseSelf: fg.base ? behind(0, fg.base.self) : undefined,
  });
}

/** Orders nodes into a tree: among siblings the heaviest first, what was put together last. */
export function build(words: Words, nodes: Nodes): Tree {
  const n = nodes.fn.length;
  const share = shares(nodes);
  const { fn, parent, depth, end, from } = preorder(words.functions, nodes, share);

  const pick = (column: ArrayLike<number>) => Float64Array.from(from, (i) => column[i]);
  const value = pick(nodes.value);
  const self = pick(nodes.self);
  const baseValue = nodes.baseValue ? pick(nodes.baseValue) : null;
  const baseSelf = nodes.baseSelf ? pick(nodes.baseSelf) : null;
  for (let i = 0; i < n; i++) {
    if (fn[i] !== SMALL) continue;
    self[i] = value[i];
    if (baseSelf && baseValue) baseSelf[i] = baseValue[i];
  }

  const width = pick(share);
  const start = new Float64Array(n);
  const next = new Float64Array(n); // by parent: where its next child begins
  const key = new Uint32Array(n);
  const names = words.functions.map((f) => hash(`${f.name}\0${f.module}`));
  let depths = n > 0 ? 1 : 0;
  for (let i = 1; i < n; i++) {
    const p = parent[i];
    start[i] = next[p];
    next[p] += width[i];
    next[i] = start[i];
    key[i] = mix(key[p], fn[i] >= 0 ? names[fn[i]] : 1);
    depths = Math.max(depths, depth[i] + 1);
  }
  return {
    functions: words.functions,
    type: words.type,
    unit: words.unit,
    total: value[0] ?? 0,
    baseTotal: baseValue ? baseValue[0] : 0,
    size: n,
    depths,
    fn,
    depth,
    parent,
    end,
    value,
    self,
    baseValue,
    baseSelf,
    start,
    width,
    key,
  };
}

/**
 * How wide each node is, as a share of the whole. In a diff a frame is as wide as the mean of its
 * two shares, so that what is gone can be seen as well as what is new.
 */
function shares(nodes: Nodes): Float64Array {
  const { value, baseValue } = nodes;
  const total = value[0] || 1;
  if (!baseValue) return Float64Array.from(value, (v) => v / total);
  const baseTotal = baseValue[0] || 1;
  const sides = (value[0] > 0 ? 1 : 0) + (baseValue[0] > 0 ? 1 : 0) || 1;
  return Float64Array.from(value, (v, i) => (v / total + baseValue[i] / baseTotal) / sides);
}

function preorder(functions: Func[], nodes: Nodes, share: Float64Array) {
  const n = nodes.fn.length;
  const children = childrenOf(nodes.parent, n);
  const heavier = (a: number, b: number) => {
    const small = Number(nodes.fn[a] === SMALL) - Number(nodes.fn[b] === SMALL);
    if (small !== 0) return small;
    if (share[a] !== share[b]) return share[b] - share[a];
    const [x, y] = [functions[nodes.fn[a]]?.name ?? "", functions[nodes.fn[b]]?.name ?? ""];
    return x < y ? -1 : x > y ? 1 : a - b;
  };

  const fn = new Int32Array(n);
  const parent = new Int32Array(n);
  const depth = new Int32Array(n);
  const end = new Int32Array(n);
  const from = new Int32Array(n); // where a node stood in nodes
  const stack: [node: number, parent: number][] = n > 0 ? [[0, -1]] : [];
  let at = 0;
  for (let top = stack.pop(); top; top = stack.pop()) {
    const [i, p] = top;
    from[at] = i;
    fn[at] = nodes.fn[i];
    parent[at] = p;
    depth[at] = p < 0 ? 0 : depth[p] + 1;
    const kids = children(i).sort(heavier);
    for (let k = kids.length - 1; k >= 0; k--) stack.push([kids[k], at]);
    at++;
  }
  for (let i = n - 1; i >= 0; i--) {
    end[i] = Math.max(end[i], i + 1);
    if (parent[i] >= 0) end[parent[i]] = Math.max(end[parent[i]], end[i]);
  }
  return { fn, parent, depth, end, from };
}

/** Groups nodes by parent with two arrays instead of n lists. */
function childrenOf(parent: ArrayLike<number>, n: number): (i: number) => number[] {
  const first = new Int32Array(n + 1);
  for (let i = 1; i < n; i++) first[parent[i] + 1]++;
  for (let i = 1; i <= n; i++) first[i] += first[i - 1];
  const fill = first.slice();
  const all = new Int32Array(n);
  for (let i = 1; i < n; i++) all[fill[parent[i]]++] = i;
  return (i) => Array.from(all.subarray(first[i], first[i + 1]));
}

/** What a node is called. */
export function nameOf(tree: Tree, i: number): string {
  const f = tree.fn[i];
  if (f === ROOT) return "all";
  if (f === SMALL) return "small frames";
  return tree.functions[f].name;
}

/** The nodes from the root down to i. */
export function pathTo(tree: Tree, i: number): number[] {
  const path: number[] = [];
  for (let p = i; p >= 0; p = tree.parent[p]) path.push(p);
  return path.reverse();
}
