// SPDX-License-Identifier: Apache-2.0
// Other views of a tree: turned over (what the leaves were called by), and one function's callers
// and callees. Each is a tree again, so everything else works on it unchanged.

import { build, ROOT, type Tree } from "./tree";

/** Stacks added up by their common beginnings. */
class Trie {
  readonly fn: number[] = [ROOT];
  readonly parent: number[] = [-1];
  readonly value: number[] = [0];
  readonly self: number[] = [0];
  readonly baseValue: number[] = [0];
  readonly baseSelf: number[] = [0];
  private readonly known = new Map<number, number>();
  private readonly stride: number;

  constructor(private readonly tree: Tree) {
    this.stride = tree.functions.length + 2;
  }

  child(parent: number, fn: number): number {
    const key = parent * this.stride + fn + 2;
    let node = this.known.get(key);
    if (node === undefined) {
      node = this.fn.length;
      this.known.set(key, node);
      this.fn.push(fn);
      this.parent.push(parent);
      for (const c of [this.value, this.self, this.baseValue, this.baseSelf]) c.push(0);
    }
    return node;
  }

  add(node: number, value: number, base: number): void {
    this.value[node] += value;
    this.baseValue[node] += base;
  }

  addSelf(node: number, value: number, base: number): void {
    this.self[node] += value;
    this.baseSelf[node] += base;
  }

  toTree(): Tree {
    const { fn, parent, value, self, baseValue, baseSelf } = this;
    const diff = this.tree.baseValue ? { baseValue, baseSelf } : {};
    return build(this.tree, { fn, parent, value, self, ...diff });
  }
}

/** Adds the path from node i outwards below the trie's root. */
function outwards(tree: Tree, trie: Trie, i: number, value: number, base: number): void {
  let at = 0;
  trie.add(at, value, base);
  for (let p = i; p > 0; p = tree.parent[p]) {
    at = trie.child(at, tree.fn[p]);
    trie.add(at, value, base);
  }
  trie.addSelf(at, value, base);
}

/** The tree turned over: below the root the leaves, below each what called it. */
export function invert(tree: Tree): Tree {
  const trie = new Trie(tree);
  for (let i = 1; i < tree.size; i++) {
    const base = tree.baseSelf ? tree.baseSelf[i] : 0;
    if (tree.self[i] > 0 || base > 0) outwards(tree, trie, i, tree.self[i], base);
  }
  return trie.toTree();
}

/** Who calls the functions that are marked: below the root the function, below it its callers. */
export function callers(tree: Tree, marked: Uint8Array): Tree {
  const trie = new Trie(tree);
  for (const i of outermost(tree, marked)) {
    outwards(tree, trie, i, tree.value[i], tree.baseValue ? tree.baseValue[i] : 0);
  }
  return trie.toTree();
}

/** What the functions that are marked call, added up over everyone who calls them. */
export function callees(tree: Tree, marked: Uint8Array): Tree {
  const trie = new Trie(tree);
  const open: number[] = []; // by depth: the trie's node
  for (const i of outermost(tree, marked)) {
    const top = tree.depth[i];
    trie.add(0, tree.value[i], tree.baseValue ? tree.baseValue[i] : 0);
    for (let j = i; j < tree.end[i]; j++) {
      const above = j === i ? 0 : open[tree.depth[j] - top - 1];
      const node = trie.child(above, tree.fn[j]);
      open[tree.depth[j] - top] = node;
      trie.add(node, tree.value[j], tree.baseValue ? tree.baseValue[j] : 0);
      trie.addSelf(node, tree.self[j], tree.baseSelf ? tree.baseSelf[j] : 0);
    }
  }
  return trie.toTree();
}

/** Nodes of marked functions that are not inside another such node: recursion counts once. */
function* outermost(tree: Tree, marked: Uint8Array): Generator<number> {
  for (let i = 1; i < tree.size; ) {
    if (tree.fn[i] >= 0 && marked[tree.fn[i]] === 1) {
      yield i;
      i = tree.end[i];
    } else {
      i++;
    }
  }
}

/** Marks the functions of a name. */
export function functionsNamed(tree: Tree, name: string): Uint8Array {
  return Uint8Array.from(tree.functions, (f) => Number(f.name === name));
}
