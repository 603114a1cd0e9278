// SPDX-License-Identifier: Apache-2.0
// The flame graph as an element: the canvas, its tooltip, and the same told in words.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ROW } from "./draw";
import { interact } from "./interact";
import { Biggest, describe } from "./spoken";
import { Tooltip } from "./tooltip";
import type { Tree } from "./tree";
import { FlameView, type Target } from "./view";
import { placeOf, zoomToBlock, zoomToNode, zoomToView } from "./zoom";

export interface FlameProps {
  tree: Tree;
  label: string; // what the canvas shows, for those who cannot see it
  zoom: string;
  onZoom(zoom: string): void;
  marked: Uint8Array | null;
  seconds: number; // length of the range, to tell cores
  upward?: boolean; // the root at the bottom
  rootless?: boolean; // without the row of the root
}

export function Flame({
  tree,
  label,
  zoom,
  onZoom,
  marked,
  seconds,
  upward = false,
  rootless = false,
}: FlameProps) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const view = useRef<FlameView | null>(null);
  const shown = useRef<{ tree: Tree; zoom: string } | null>(null);
  const [tip, setTip] = useState<{ target: Target; x: number; y: number } | null>(null);
  const [spoken, setSpoken] = useState("");

  // What the hands below ask for must be of now, and they are bound once.
  const now = useRef({ tree, zoom, onZoom, seconds });
  now.current = { tree, zoom, onZoom, seconds };

  useLayoutEffect(() => {
    const [b, c] = [box.current, canvas.current];
    if (!b || !c) return;
    const v = new FlameView(c, upward, rootless);
    view.current = v;
    const letGo = interact(b, c, v, {
      tree: () => now.current.tree,
      hover: (target, x, y) => setTip(target && { target, x, y }),
      choose: (target, keyed) => {
        v.focus(target.node, keyed);
        now.current.onZoom(zoomOf(now.current.tree, target));
      },
      look: (node) => {
        v.focus(node, true);
        const top = v.rowTop(node);
        if (top < b.scrollTop) b.scrollTop = top;
        if (top + ROW > b.scrollTop + b.clientHeight) b.scrollTop = top + ROW - b.clientHeight;
        setSpoken(describe(now.current.tree, node, now.current.seconds));
      },
      pan: (to) => now.current.onZoom(zoomToView(to)),
      reset: () => now.current.onZoom(""),
    });
    const resized = new ResizeObserver(() => {
      v.resize(b.clientWidth, b.clientHeight);
      v.setScroll(b.scrollTop);
    });
    resized.observe(b);
    const scrolled = () => v.setScroll(b.scrollTop);
    b.addEventListener("scroll", scrolled, { passive: true });
    if (upward) b.scrollTop = b.scrollHeight;
    return () => {
      resized.disconnect();
      b.removeEventListener("scroll", scrolled);
      letGo();
      v.dispose();
    };
  }, [upward, rootless]);

  useLayoutEffect(() => {
    const v = view.current;
    if (!v) return;
    const fresh = shown.current?.tree !== tree;
    if (fresh) {
      v.setTree(tree);
      setTip(null);
    }
    if (fresh || shown.current?.zoom !== zoom) v.setPlace(placeOf(tree, zoom), fresh);
    shown.current = { tree, zoom };
  }, [tree, zoom]);

  useEffect(() => view.current?.setMarked(marked), [marked]);

  const place = placeOf(tree, zoom);
  return (
    <div class="flame" data-flame={label}>
      <div class="flame-scroll" ref={box}>
        <div class="flame-rows" style={{ height: `${FlameView.heightOf(tree, rootless)}px` }}>
          {/* biome-ignore lint/a11y/noInteractiveElementToNoninteractiveRole: it takes keys of its own */}
          <canvas
            ref={canvas}
            tabIndex={0}
            role="application"
            aria-roledescription="flame graph"
            aria-label={`${label}. Arrow keys move along frames, Enter zooms, Escape shows all.`}
          />
        </div>
      </div>
      {tip && <Tooltip tree={tree} {...tip} seconds={seconds} />}
      <div class="unseen" aria-live="polite">
        {spoken}
      </div>
      <Biggest tree={tree} below={place.node} seconds={seconds} />
    </div>
  );
}

function zoomOf(tree: Tree, target: Target): string {
  if (target.last > target.node) return zoomToBlock(tree, target.node, target.last);
  return zoomToNode(tree, target.node);
}
