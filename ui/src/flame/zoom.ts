// SPDX-License-Identifier: Apache-2.0
// What the flame graph is zoomed to, in words that fit into a link and outlive a refresh: frames
// are named by the hash of their path, not by their place in one answer.

import { type View, WHOLE } from "./layout";
import type { Tree } from "./tree";

export interface Place extends View {
  node: number; // the frame zoomed to; the root when the view is no frame's
}

export const ALL: Place = { ...WHOLE, node: 0 };

/** "1a2b3c4d": that frame. */
export function zoomToNode(tree: Tree, node: number): string {
  return node <= 0 ? "" : tree.key[node].toString(16);
}

/** "1a2b3c4d-5e6f7a8b": the siblings from one frame to another. */
export function zoomToBlock(tree: Tree, first: number, last: number): string {
  return `${tree.key[first].toString(16)}-${tree.key[last].toString(16)}`;
}

/** "0.25~0.5": that part of the width. */
export function zoomToView(view: View): string {
  if (view.x0 <= 0 && view.x1 >= 1) return "";
  const short = (x: number) => Number(x.toPrecision(9)).toString();
  return `${short(view.x0)}~${short(view.x1)}`;
}

/** Finds the place that zoom names; what is not in this tree, or is no zoom at all, is the whole. */
export function placeOf(tree: Tree, zoom: string): Place {
  if (zoom.includes("~")) return placeOfView(zoom);
  const [first, last = first] = zoom.split("-");
  const a = nodeOf(tree, first);
  const b = nodeOf(tree, last);
  if (a <= 0 || b < a || tree.parent[a] !== tree.parent[b]) return ALL;
  const node = a === b ? a : tree.parent[a];
  return { x0: tree.start[a], x1: tree.start[b] + tree.width[b], node };
}

function placeOfView(zoom: string): Place {
  const [x0, x1] = zoom.split("~").map(Number);
  if (!(x0 >= 0 && x1 <= 1 && x1 - x0 > 1e-9)) return ALL;
  return { x0, x1, node: 0 };
}

function nodeOf(tree: Tree, text: string): number {
  if (!/^[0-9a-f]{1,8}$/.test(text)) return -1;
  return tree.key.indexOf(Number.parseInt(text, 16));
}
