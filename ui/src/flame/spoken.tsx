// SPDX-License-Identifier: Apache-2.0
// The flame graph for those who do not see it (and for tests): the heaviest frames as a list.

import { useMemo } from "preact/hooks";
import * as format from "../format";
import { nameOf, type Tree } from "./tree";

const MOST = 100;

/** One frame in words. */
export function describe(tree: Tree, i: number, seconds: number): string {
  const func = tree.functions[tree.fn[i]];
  const where = func?.module ? ` in ${func.module}` : "";
  const value = format.value(tree.value[i], tree.unit);
  const rate = format.perRange(tree.value[i], tree.unit, tree.type, seconds);
  const share = format.percent(tree.value[i], tree.total);
  return `${nameOf(tree, i)}${where}: ${share}, ${value}${rate && `, ${rate}`}; ${tree.depth[i]} deep`;
}

/** The heaviest frames in a subtree, hidden from sight. */
export function Biggest({ tree, below, seconds }: { tree: Tree; below: number; seconds: number }) {
  const biggest = useMemo(() => {
    const nodes: number[] = [];
    for (let i = Math.max(1, below); i < tree.end[below]; i++) nodes.push(i);
    return nodes.sort((a, b) => tree.value[b] - tree.value[a] || a - b).slice(0, MOST);
  }, [tree, below]);
  return (
    <ol class="unseen" aria-label="heaviest frames shown" data-biggest>
      {biggest.map((i) => (
        <li key={i} data-function={nameOf(tree, i)} data-value={tree.value[i]}>
          {describe(tree, i, seconds)}
        </li>
      ))}
    </ol>
  );
}
