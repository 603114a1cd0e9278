// SPDX-License-Identifier: Apache-2.0
// Paints boxes onto a canvas.

import { SMALL } from "../api/profile";
import type { Theme } from "./colours";
import type { Labels } from "./labels";
import type { Boxes } from "./layout";
import { nameOf, type Tree } from "./tree";

export const ROW = 20; // pixels
const GAP = 1;
const PAD = 4;
const MARK = 3; // the line below what a search found
const BELOW = 0.55; // how strong frames below the zoomed one are: they are only context
export const FONT =
  '12px system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif';

/** Narrower than this no text is tried. */
const NARROWEST_TEXT = 22;

export interface Picture {
  tree: Tree;
  boxes: Boxes;
  theme: Theme;
  colour: (node: number) => string;
  labels: Labels;
  marked: Uint8Array | null; // by function: what a search found
  width: number; // of the canvas, CSS pixels
  height: number;
  rowY: (row: number) => number; // top edge of a row
  hovered: number; // box, or -1
  focused: number; // node that the keyboard is at, or -1
  zoomed: number; // node: what is below it is only context
}

/**
 * Paints the picture: all boxes, then all names. Changing the colour is the dearest call of a
 * canvas, so it is changed as seldom as can be.
 */
export function draw(ctx: CanvasRenderingContext2D, p: Picture): void {
  ctx.globalAlpha = 1;
  ctx.fillStyle = p.theme.background;
  ctx.fillRect(0, 0, p.width, p.height);
  drawBoxes(ctx, p);
  drawNames(ctx, p);
  drawOutlines(ctx, p);
}

function drawBoxes(ctx: CanvasRenderingContext2D, p: Picture): void {
  const { tree, boxes, theme, marked } = p;
  const context = tree.depth[p.zoomed] ?? 0;
  let colour = "";
  for (let b = 0; b < boxes.count; b++) {
    const node = boxes.node[b];
    const { x, w } = extent(p, b);
    const y = p.rowY(tree.depth[node]);
    ctx.globalAlpha = tree.depth[node] < context ? BELOW : 1;
    if (isBlock(p, b)) {
      drawBlock(ctx, theme, x, y, w);
      colour = "";
      continue;
    }
    const own = isAside(p, node) ? theme.root : p.colour(node);
    if (own !== colour) ctx.fillStyle = own;
    colour = own;
    ctx.fillRect(x, y, w, ROW - GAP);
    if (marked === null || isAside(p, node)) continue;
    ctx.fillStyle = theme.match;
    colour = theme.match;
    ctx.fillRect(x, y + ROW - GAP - MARK, w, MARK);
  }
}

function drawNames(ctx: CanvasRenderingContext2D, p: Picture): void {
  const { tree, boxes, theme } = p;
  const context = tree.depth[p.zoomed] ?? 0;
  ctx.font = FONT;
  ctx.textBaseline = "middle";
  let colour = "";
  for (let b = 0; b < boxes.count; b++) {
    const node = boxes.node[b];
    const { x, w } = extent(p, b);
    if (w < NARROWEST_TEXT || isBlock(p, b)) continue;
    const text = p.labels.fit(nameOf(tree, node), w - 2 * PAD);
    if (text === "") continue;
    const own = isAside(p, node) ? theme.faint : theme.text;
    if (own !== colour) ctx.fillStyle = own;
    colour = own;
    ctx.globalAlpha = tree.depth[node] < context ? BELOW : 1;
    ctx.fillText(text, x + PAD, p.rowY(tree.depth[node]) + ROW / 2);
  }
  ctx.globalAlpha = 1;
}

/** What of a box is on the canvas. A pixel's gap tells neighbours apart, where there is room. */
function extent(p: Picture, b: number): { x: number; w: number } {
  const x = Math.max(0, p.boxes.x[b]);
  const w = Math.min(p.width, p.boxes.x[b] + p.boxes.width[b]) - x;
  return { x, w: w > 3 ? w - GAP : w };
}

function isBlock({ boxes, tree }: Picture, b: number): boolean {
  return boxes.last[b] >= 0 || tree.fn[boxes.node[b]] === SMALL;
}

/** Whether a search leaves a frame aside. */
function isAside({ marked, tree }: Picture, node: number): boolean {
  return marked !== null && (tree.fn[node] < 0 || marked[tree.fn[node]] === 0);
}

/** Small frames put together: hatched, so that no one takes them for a function. */
function drawBlock(
  ctx: CanvasRenderingContext2D,
  theme: Theme,
  x: number,
  y: number,
  w: number,
): void {
  ctx.fillStyle = theme.small;
  ctx.fillRect(x, y, w, ROW - GAP);
  ctx.fillStyle = theme.smallLine;
  if (w < 5) {
    ctx.fillRect(x, y + 5, w, ROW - GAP - 10);
    return;
  }
  for (let at = x + 2; at < x + w - 1; at += 4) ctx.fillRect(at, y + 7, 1.5, ROW - GAP - 14);
}

function drawOutlines(ctx: CanvasRenderingContext2D, p: Picture): void {
  const { boxes, tree } = p;
  ctx.strokeStyle = p.theme.outline;
  for (let b = 0; b < boxes.count; b++) {
    const focused = boxes.node[b] === p.focused;
    if (b !== p.hovered && !focused) continue;
    ctx.lineWidth = focused ? 2 : 1;
    const inset = ctx.lineWidth / 2;
    const x = Math.max(0, boxes.x[b]);
    const right = Math.min(p.width, boxes.x[b] + boxes.width[b]);
    const y = p.rowY(tree.depth[boxes.node[b]]);
    ctx.strokeRect(
      x + inset,
      y + inset,
      Math.max(1, right - x - GAP - 2 * inset),
      ROW - GAP - 2 * inset,
    );
  }
}
