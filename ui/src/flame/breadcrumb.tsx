// SPDX-License-Identifier: Apache-2.0
import * as format from "../format";
import { shorten } from "./labels";
import { nameOf, pathTo, type Tree } from "./tree";
import { placeOf, zoomToNode } from "./zoom";

/** More than this, and the middle of the path is left out. */
const MOST = 7;

interface BreadcrumbProps {
  tree: Tree;
  zoom: string;
  onZoom(zoom: string): void;
  onSandwich(fn: string): void;
}

/** Where the zoom stands, each step of it a way back. */
export function Breadcrumb({ tree, zoom, onZoom, onSandwich }: BreadcrumbProps) {
  const place = placeOf(tree, zoom);
  if (zoom === "" || (place.x0 === 0 && place.x1 === 1 && place.node === 0)) return null;
  const path = pathTo(tree, place.node);
  const skipped = Math.max(0, path.length - MOST);
  const shown = skipped > 0 ? [path[0], ...path.slice(skipped + 1)] : path;
  const partial = place.x1 - place.x0 < tree.width[place.node] - 1e-9;
  return (
    <nav class="breadcrumb" aria-label="zoom">
      {shown.map((node, i) => (
        <span key={node} class="crumb">
          {i === 1 && skipped > 0 && <span class="faint">… {skipped} … </span>}
          <button
            type="button"
            class="link"
            title={nameOf(tree, node)}
            onClick={() => onZoom(zoomToNode(tree, node))}
          >
            {shorten(nameOf(tree, node))}
          </button>
        </span>
      ))}
      {partial && <span class="crumb faint">a part of it</span>}
      <span class="faint num">{format.percent(place.x1 - place.x0)}</span>
      {tree.fn[place.node] >= 0 && !partial && (
        <button
          type="button"
          class="small"
          title="Who calls this function, and what it calls, over all stacks"
          onClick={() => onSandwich(nameOf(tree, place.node))}
        >
          callers &amp; callees
        </button>
      )}
      <button type="button" class="small" onClick={() => onZoom("")} title="Esc">
        reset zoom
      </button>
    </nav>
  );
}
