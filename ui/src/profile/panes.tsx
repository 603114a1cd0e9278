// SPDX-License-Identifier: Apache-2.0
// Flame graph and top table, side by side or one of them.

import { useMemo } from "preact/hooks";
import { Breadcrumb } from "../flame/breadcrumb";
import { Flame } from "../flame/flame";
import type { Found, Matcher } from "../flame/search";
import type { Tree } from "../flame/tree";
import { placeOf, zoomToNode } from "../flame/zoom";
import { useStore } from "../state/store";
import { isWhole, rowsOf } from "../table/rows";
import { TopTable } from "../table/top";
import type { Profile } from "./load";
import { Sandwich } from "./sandwich";

interface PanesProps {
  profile: Profile;
  shown: Tree; // the tree as it is drawn: turned over or not
  found: Found | null;
  match: Matcher | null;
  stale: boolean; // of another selection than is asked for now
}

export function Panes({ profile, shown, found, match, stale }: PanesProps) {
  const store = useStore();
  const s = store.state.value;
  const { tree } = profile;
  const onZoom = (zoom: string) => store.patch({ zoom });
  const onSandwich = (fn: string) => {
    const show = s.show === "table" ? "both" : s.show;
    store.patch({ tree: "sandwich", fn, zoom: "", show });
  };
  const onFunction = (name: string) => {
    const show = s.show === "table" ? "both" : s.show;
    if (s.tree === "sandwich") store.patch({ fn: name, show });
    else store.patch({ zoom: zoomToNode(shown, heaviest(shown, name)), show });
  };

  // Zoomed in, the table tells of what is seen.
  const place = s.tree === "down" ? placeOf(tree, s.zoom) : null;
  const below = place && place.node > 0 ? place.node : 0;
  const rows = useMemo(
    () => (below > 0 ? rowsOf(tree, below) : profile.rows),
    [profile, tree, below],
  );
  const exact = useMemo(
    () => (below > 0 ? isWhole(tree, below) : profile.exact),
    [profile, tree, below],
  );
  const totals = useMemo(() => ({ total: tree.total, baseTotal: tree.baseTotal }), [tree]);

  return (
    <>
      {s.tree !== "sandwich" && (
        <Breadcrumb tree={shown} zoom={s.zoom} onZoom={onZoom} onSandwich={onSandwich} />
      )}
      {s.tree === "up" && s.show !== "table" && profile.cut && (
        <p class="faint pad">
          Of the frames that are drawn: small ones put together are below no function.
        </p>
      )}
      <div class={`panes ${s.show}${stale ? " stale" : ""}`}>
        {s.show !== "table" &&
          (s.tree === "sandwich" ? (
            <Sandwich profile={profile} marked={found?.marked ?? null} />
          ) : (
            <Flame
              key={s.tree}
              tree={shown}
              label={s.tree === "up" ? "inverted flame graph" : "flame graph"}
              zoom={s.zoom}
              onZoom={onZoom}
              marked={found?.marked ?? null}
              seconds={profile.seconds}
            />
          ))}
        {s.show !== "flame" && (
          <div class="table-pane">
            {!exact && (
              <p class="faint pad">
                Of the frames that are drawn: small ones put together are in no row.
              </p>
            )}
            <TopTable
              rows={rows}
              totals={totals}
              unit={tree.unit}
              diff={tree.baseValue !== null}
              match={match}
              sort={s.sort === "change" && !s.diff ? "self" : s.sort}
              reverse={s.reverse}
              onSort={(sort, reverse) => store.patch({ sort, reverse })}
              onFunction={onFunction}
              onSandwich={onSandwich}
            />
          </div>
        )}
      </div>
    </>
  );
}

/** The widest frame of a function. */
function heaviest(tree: Tree, name: string): number {
  let best = 0;
  for (let i = 1; i < tree.size; i++) {
    const f = tree.functions[tree.fn[i]];
    if (f?.name === name && (best === 0 || tree.width[i] > tree.width[best])) best = i;
  }
  return best;
}
