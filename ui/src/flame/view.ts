// SPDX-License-Identifier: Apache-2.0
// A flame graph on a canvas: what is shown of which tree, the movement from one zoom to the next,
// and which frame is where. It draws once a frame at most, and only after something changed.

import { DARK, LIGHT, painter } from "./colours";
import { draw, FONT, ROW } from "./draw";
import { Labels } from "./labels";
import { Boxes, boxAt, clamp, layout, type View } from "./layout";
import type { Tree } from "./tree";
import { ALL, type Place } from "./zoom";

const MOVE_MS = 160;

/** What the pointer or the keyboard is at. */
export interface Target {
  node: number;
  last: number; // of a block of small frames: its last node; else -1
}

export class FlameView {
  private readonly ctx: CanvasRenderingContext2D;
  private readonly labels: Labels;
  private readonly boxes = new Boxes();
  private readonly dark = matchMedia("(prefers-color-scheme: dark)");
  private readonly calm = matchMedia("(prefers-reduced-motion: reduce)");
  private tree: Tree | null = null;
  private colour: (node: number) => string = () => "";
  private place: Place = ALL;
  private view: View = ALL;
  private move: { from: View; to: View; since: number } | null = null;
  private marked: Uint8Array | null = null;
  private scroll = 0;
  private width = 0;
  private height = 0;
  private hovered = -1;
  private focused = -1;
  private keyed = false; // the keyboard is in use: show where it is
  private frame = 0;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly upward: boolean, // the outermost frame at the bottom
    private readonly rootless: boolean, // without the row of the root
  ) {
    this.ctx = canvas.getContext("2d", { alpha: false }) as CanvasRenderingContext2D;
    this.ctx.font = FONT;
    this.labels = new Labels((text) => this.ctx.measureText(text).width);
    this.dark.addEventListener("change", this.repaint);
  }

  dispose(): void {
    cancelAnimationFrame(this.frame);
    this.dark.removeEventListener("change", this.repaint);
  }

  /** Shows another tree; the keyboard stays at the frame it was at, where that is in it too. */
  setTree(tree: Tree): void {
    if (this.tree && this.focused > 0) this.focused = tree.key.indexOf(this.tree.key[this.focused]);
    this.tree = tree;
    this.hovered = -1;
    this.repaint();
  }

  /** The node that the keyboard is at. */
  get current(): number {
    return Math.max(0, this.focused);
  }

  /** How high all rows are together. */
  static heightOf(tree: Tree, rootless: boolean): number {
    return ROW * (tree.depths - Number(rootless));
  }

  setMarked(marked: Uint8Array | null): void {
    this.marked = marked;
    this.redraw();
  }

  /** Goes to a place; at once when it is the first, or when still asks for no movement. */
  setPlace(place: Place, still: boolean): void {
    this.place = place;
    if (still || this.calm.matches) {
      this.move = null;
      this.view = place;
    } else {
      this.move = { from: this.view, to: place, since: performance.now() };
    }
    this.redraw();
  }

  /** Shows a part of the width right away, as the wheel and dragging do. */
  setView(view: View): View {
    this.move = null;
    this.view = clamp(view);
    this.redraw();
    return this.view;
  }

  getView(): View {
    return this.view;
  }

  setScroll(top: number): void {
    this.scroll = top;
    this.redraw();
  }

  resize(width: number, height: number): void {
    const ratio = devicePixelRatio || 1;
    this.width = width;
    this.height = height;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.paint(performance.now());
  }

  /** The frame or block at a place of the canvas. */
  at(x: number, y: number): Target | null {
    const b = this.boxIndex(x, y);
    return b < 0 ? null : { node: this.boxes.node[b], last: this.boxes.last[b] };
  }

  hover(x: number, y: number): Target | null {
    const b = x < 0 ? -1 : this.boxIndex(x, y);
    if (b !== this.hovered) {
      this.hovered = b;
      this.redraw();
    }
    return b < 0 ? null : { node: this.boxes.node[b], last: this.boxes.last[b] };
  }

  /** Says where the keyboard is; what the pointer chose needs no outline. */
  focus(node: number, keyed: boolean): void {
    this.focused = node;
    this.keyed = keyed;
    this.redraw();
  }

  /** Where a node's row begins, counted from the top of all rows. */
  rowTop(node: number): number {
    return this.tree ? ROW * this.lineOf(this.tree.depth[node]) : 0;
  }

  /** Which line from the top a row of the tree is on, and the other way about. */
  private lineOf(row: number): number {
    const line = row - Number(this.rootless);
    return this.upward ? this.lines() - 1 - line : line;
  }

  private rowOf(line: number): number {
    return (this.upward ? this.lines() - 1 - line : line) + Number(this.rootless);
  }

  private lines(): number {
    const rows = (this.tree?.depths ?? 0) - Number(this.rootless);
    return Math.max(rows, Math.floor(this.height / ROW));
  }

  private boxIndex(x: number, y: number): number {
    if (!this.tree) return -1;
    return boxAt(this.tree, this.boxes, x, this.rowOf(Math.floor((y + this.scroll) / ROW)));
  }

  private readonly repaint = (): void => {
    if (this.tree) this.colour = painter(this.tree, this.dark.matches ? DARK : LIGHT);
    this.redraw();
  };

  private redraw(): void {
    if (this.frame === 0) this.frame = requestAnimationFrame(this.paint);
  }

  private readonly paint = (now: number): void => {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    if (!this.tree || this.width === 0) return;
    this.advance(now);

    const first = this.rowOf(Math.floor(this.scroll / ROW));
    const last = this.rowOf(Math.ceil((this.scroll + this.height) / ROW));
    const from = Math.max(Number(this.rootless), Math.min(first, last));
    layout(this.tree, this.view, this.width, from, Math.max(first, last), this.boxes);
    draw(this.ctx, {
      tree: this.tree,
      boxes: this.boxes,
      theme: this.dark.matches ? DARK : LIGHT,
      colour: this.colour,
      labels: this.labels,
      marked: this.marked,
      width: this.width,
      height: this.height,
      rowY: (row) => ROW * this.lineOf(row) - this.scroll,
      hovered: this.hovered,
      focused: this.keyed ? this.focused : -1,
      zoomed: this.place.node,
    });
    if (this.move) this.redraw();
  };

  private advance(now: number): void {
    if (!this.move) return;
    const t = Math.min(1, Math.max(0, (now - this.move.since) / MOVE_MS));
    const ease = 1 - (1 - t) ** 3;
    const { from, to } = this.move;
    const between = (a: number, b: number) => a + (b - a) * ease;
    this.view = { x0: between(from.x0, to.x0), x1: between(from.x1, to.x1) };
    if (t === 1) {
      this.view = to;
      this.move = null;
    }
  }
}
