// SPDX-License-Identifier: Apache-2.0
// What pointer, wheel and keys do to a flame graph.

import type { View } from "./layout";
import type { Tree } from "./tree";
import type { FlameView, Target } from "./view";

export interface Hands {
  tree(): Tree | null;
  hover(target: Target | null, x: number, y: number): void;
  choose(target: Target, keyed: boolean): void; // a click, or Enter
  look(node: number): void; // the keyboard moved
  pan(view: View): void; // the wheel or dragging came to rest
  reset(): void;
}

const REST_MS = 250;
const DRAG_PIXELS = 4;

/** Binds the hands to a canvas in its scrolling box; answers how to let go. */
export function interact(
  box: HTMLElement,
  canvas: HTMLCanvasElement,
  view: FlameView,
  hands: Hands,
): () => void {
  const letGo = new AbortController();
  const on = { signal: letGo.signal };
  let resting = 0;
  const rest = (v: View) => {
    clearTimeout(resting);
    resting = window.setTimeout(() => hands.pan(v), REST_MS);
  };
  const placeOf = (e: MouseEvent) => {
    const r = canvas.getBoundingClientRect();
    return { x: e.clientX - r.left, y: e.clientY - r.top };
  };

  bindPointer(box, canvas, view, hands, placeOf, rest, on);
  canvas.addEventListener(
    "wheel",
    (e) => {
      const v = view.getView();
      const size = v.x1 - v.x0;
      const width = canvas.clientWidth || 1;
      if (e.ctrlKey || e.metaKey) {
        e.preventDefault();
        const at = v.x0 + (size * placeOf(e).x) / width;
        const by = Math.exp(Math.max(-1, Math.min(1, e.deltaY / 200)));
        rest(view.setView({ x0: at - (at - v.x0) * by, x1: at + (v.x1 - at) * by }));
        return;
      }
      const sideways = e.shiftKey
        ? e.deltaY
        : Math.abs(e.deltaX) > Math.abs(e.deltaY)
          ? e.deltaX
          : 0;
      if (sideways === 0 || size >= 1) return;
      e.preventDefault();
      const by = (sideways * size) / width;
      rest(view.setView({ x0: v.x0 + by, x1: v.x1 + by }));
    },
    { passive: false, ...on },
  );
  bindKeys(canvas, view, hands, on);
  return () => {
    clearTimeout(resting);
    letGo.abort();
  };
}

function bindPointer(
  box: HTMLElement,
  canvas: HTMLCanvasElement,
  view: FlameView,
  hands: Hands,
  placeOf: (e: MouseEvent) => { x: number; y: number },
  rest: (v: View) => void,
  on: { signal: AbortSignal },
): void {
  let drag: { x: number; y: number; view: View; scroll: number; moved: boolean } | null = null;
  canvas.addEventListener(
    "pointerdown",
    (e) => {
      if (e.button !== 0) return;
      drag = {
        x: e.clientX,
        y: e.clientY,
        view: view.getView(),
        scroll: box.scrollTop,
        moved: false,
      };
    },
    on,
  );
  canvas.addEventListener(
    "pointermove",
    (e) => {
      const { x, y } = placeOf(e);
      if (!drag || e.buttons === 0) {
        drag = null;
        hands.hover(view.hover(x, y), x, y);
        return;
      }
      const dx = e.clientX - drag.x;
      const dy = e.clientY - drag.y;
      if (!drag.moved && Math.hypot(dx, dy) < DRAG_PIXELS) return;
      if (!drag.moved) {
        drag.moved = true;
        canvas.setPointerCapture(e.pointerId);
        hands.hover(null, 0, 0);
      }
      box.scrollTop = drag.scroll - dy;
      const size = drag.view.x1 - drag.view.x0;
      if (size >= 1) return;
      const by = (dx * size) / (canvas.clientWidth || 1);
      rest(view.setView({ x0: drag.view.x0 - by, x1: drag.view.x1 - by }));
    },
    on,
  );
  canvas.addEventListener(
    "pointerup",
    (e) => {
      const clicked = drag && !drag.moved;
      drag = null;
      if (!clicked) return;
      const { x, y } = placeOf(e);
      const target = view.at(x, y);
      hands.hover(null, 0, 0);
      if (target) hands.choose(target, false);
    },
    on,
  );
  canvas.addEventListener(
    "pointerleave",
    () => {
      view.hover(-1, -1);
      hands.hover(null, 0, 0);
    },
    on,
  );
}

/** Arrows go along the tree: out, to the heaviest above, to the siblings. */
function bindKeys(
  canvas: HTMLCanvasElement,
  view: FlameView,
  hands: Hands,
  on: { signal: AbortSignal },
): void {
  canvas.addEventListener(
    "keydown",
    (e) => {
      const tree = hands.tree();
      if (!tree || e.ctrlKey || e.metaKey || e.altKey) return;
      const at = view.current;
      if (e.key === "Enter" || e.key === " ") {
        e.preventDefault();
        hands.choose({ node: at, last: -1 }, true);
        return;
      }
      if (e.key === "Escape") {
        hands.reset();
        return;
      }
      const to = step(tree, at, e.key);
      if (to === null) return;
      e.preventDefault();
      hands.look(to);
    },
    on,
  );
}

/** The node that a key leads to from a node; null for a key that leads nowhere. */
export function step(tree: Tree, at: number, key: string): number | null {
  const parent = tree.parent[at];
  switch (key) {
    case "ArrowUp":
      return parent < 0 ? at : parent;
    case "ArrowDown":
      return at + 1 < tree.end[at] ? at + 1 : at;
    case "ArrowRight":
      return parent >= 0 && tree.end[at] < tree.end[parent] ? tree.end[at] : at;
    case "ArrowLeft": {
      if (parent < 0) return at;
      let before = at;
      for (let i = parent + 1; i < at; i = tree.end[i]) before = i;
      return before;
    }
    case "Home":
      return 0;
  }
  return null;
}
