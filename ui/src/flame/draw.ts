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

export function draw(ctx: CanvasRenderingContext2D, p: Picture): void {
  const { tree, boxes, theme } = p;
  ctx.fillStyle = theme.background;
  ctx.fillRect(0, 0, p.width, p.height);
  ctx.font = FONT;
  ctx.textBaseline = "middle";
  const context = tree.depth[p.zoomed] ?? 0;

  for (let b = 0; b < boxes.count; b++) {
    const node = boxes.node[b];
    const x = Math.max(0, boxes.x[b]);
    const right = Math.min(p.width, boxes.x[b] + boxes.width[b]);
    const y = p.rowY(tree.depth[node]);
    // A pixel's gap tells neighbours apart, where there is room for it.
    const w = right - x > 3 ? right - x - GAP : right - x;
    const block = boxes.last[b] >= 0 || tree.fn[node] === SMALL;
    ctx.globalAlpha = tree.depth[node] < context ? 0.55 : 1;
    if (block) drawBlock(ctx, theme, x, y, w);
    else drawFrame(ctx, p, node, x, y, w);
  }
  ctx.globalAlpha = 1;
  drawOutlines(ctx, p);
}

function drawFrame(
  ctx: CanvasRenderingContext2D,
  p: Picture,
  node: number,
  x: number,
  y: number,
  w: number,
): void {
  const { tree, theme, marked } = p;
  const found = marked !== null && tree.fn[node] >= 0 && marked[tree.fn[node]] === 1;
  const aside = marked !== null && !found;
  ctx.fillStyle = aside ? theme.root : p.colour(node);
  ctx.fillRect(x, y, w, ROW - GAP);
  if (found) {
    ctx.fillStyle = theme.match;
    ctx.fillRect(x, y + ROW - GAP - 3, w, 3);
  }
  if (w < NARROWEST_TEXT) return;
  const text = p.labels.fit(nameOf(tree, node), w - 2 * PAD);
  if (text === "") return;
  ctx.fillStyle = aside ? theme.faint : theme.text;
  ctx.fillText(text, x + PAD, y + ROW / 2);
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
