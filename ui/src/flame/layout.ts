// SPDX-License-Identifier: Apache-2.0
// Which boxes are on the screen. Only what can be seen is visited; siblings too narrow to draw
// become one block, so that nothing is silently absent.

import type { Tree } from "./tree";

/** Narrower than this, in pixels, a frame is put together with its neighbours. */
export const NARROWEST = 0.5;

/** The part of the whole that is shown, as shares from 0 to 1. */
export interface View {
  x0: number;
  x1: number;
}

export const WHOLE: View = { x0: 0, x1: 1 };

/** The boxes of one picture, in columns that are used again for the next. */
export class Boxes {
  count = 0;
  node = new Int32Array(1024);
  last = new Int32Array(1024); // of a block: its last node; of a frame: -1
  x = new Float64Array(1024);
  width = new Float64Array(1024);

  push(node: number, last: number, x: number, width: number): void {
    if (this.count === this.node.length) this.grow();
    const i = this.count++;
    this.node[i] = node;
    this.last[i] = last;
    this.x[i] = x;
    this.width[i] = width;
  }

  private grow(): void {
    const n = 2 * this.node.length;
    const wider = <T extends Int32Array | Float64Array>(from: T, to: T) => {
      to.set(from);
      return to;
    };
    this.node = wider(this.node, new Int32Array(n));
    this.last = wider(this.last, new Int32Array(n));
    this.x = wider(this.x, new Float64Array(n));
    this.width = wider(this.width, new Float64Array(n));
  }
}

/**
 * Fills boxes with what is seen of tree through view on a canvas of so many pixels, in rows
 * firstRow to lastRow. A block stands for the siblings node to last with all above them.
 */
export function layout(
  tree: Tree,
  view: View,
  pixels: number,
  firstRow: number,
  lastRow: number,
  boxes: Boxes,
): void {
  const { start, width, depth, end, parent } = tree;
  const scale = pixels / (view.x1 - view.x0);
  boxes.count = 0;

  let first = -1; // the block being gathered
  let last = -1;
  const flush = () => {
    if (first < 0) return;
    const x = (start[first] - view.x0) * scale;
    const right = (start[last] + width[last] - view.x0) * scale;
    if (depth[first] >= firstRow) boxes.push(first, last, x, Math.max(1, right - x));
    first = -1;
  };

  let i = 0;
  while (i < tree.size) {
    const x = (start[i] - view.x0) * scale;
    const w = width[i] * scale;
    if (first >= 0 && parent[i] !== parent[first]) flush();
    if (x >= pixels || depth[i] > lastRow) {
      // So are all siblings that follow.
      flush();
      i = parent[i] < 0 ? tree.size : end[parent[i]];
      continue;
    }
    if (x + w <= 0 || w === 0) {
      i = end[i];
      continue;
    }
    if (w < NARROWEST) {
      if (first < 0) first = i;
      last = i;
      i = end[i];
      continue;
    }
    flush();
    if (depth[i] >= firstRow) boxes.push(i, -1, x, w);
    i++;
  }
  flush();
}

/** The box at a place, or -1. */
export function boxAt(tree: Tree, boxes: Boxes, x: number, row: number): number {
  for (let b = 0; b < boxes.count; b++) {
    if (tree.depth[boxes.node[b]] !== row) continue;
    if (x >= boxes.x[b] && x < boxes.x[b] + boxes.width[b]) return b;
  }
  return -1;
}

/** How many frames lie in the siblings first to last and above them. */
export function framesIn(tree: Tree, first: number, last: number): number {
  return tree.end[last] - first;
}

/** Keeps a view inside the whole and no narrower than doubles can tell apart. */
export function clamp(view: View): View {
  const size = Math.min(1, Math.max(1e-9, view.x1 - view.x0));
  const x0 = Math.min(1 - size, Math.max(0, view.x0));
  return { x0, x1: x0 + size };
}
