// SPDX-License-Identifier: Apache-2.0
// The profile page: timeline, toolbar, flame graph and table of one selection.

import { useEffect, useMemo } from "preact/hooks";
import type { Node } from "../api/answers";
import * as api from "../api/client";
import { find, parseSearch } from "../flame/search";
import { invert } from "../flame/transform";
import type { Tree } from "../flame/tree";
import * as format from "../format";
import { Failure } from "../parts/notice";
import { useLoad } from "../state/load";
import { useStore } from "../state/store";
import { Timeline } from "../timeline/timeline";
import { CaptureBar } from "./capturebar";
import { Compare } from "./compare";
import { Empty } from "./empty";
import { Legend } from "./legend";
import { loadKept, loadProfile, type Profile, selectionOf } from "./load";
import { Losses } from "./losses";
import { Panes } from "./panes";
import { Toolbar } from "./toolbar";

export function ProfileView({ nodes }: { nodes: Node[] | null }) {
  const store = useStore();
  const s = store.state.value;
  const tick = store.tick.value;
  const selection = selectionOf(s);
  const subject = JSON.stringify(
    s.diff ? [selection, s.type, s.base_query, s.base_from, s.base_to] : [selection, s.type],
  );
  const profile = useLoad((signal) => loadProfile(s, signal), subject, tick);
  const types = useLoad((signal) => api.types(selection, signal), JSON.stringify(selection), tick);
  const lossy = !s.diff && (profile.last?.losses.length ?? 0) > 0;
  const kept = useLoad(
    lossy ? (signal) => loadKept(s, signal) : null,
    JSON.stringify(selection),
    tick,
  );

  const search = useMemo(() => parseSearch(s.search), [s.search]);
  // While another selection is fetched, the old one stays, greyed.
  const data = profile.error ? profile.data : profile.last;
  const stale = data !== profile.data;
  const tree = data?.tree ?? null;
  const shown = useMemo(() => (tree && s.tree === "up" ? invert(tree) : tree), [tree, s.tree]);
  const found = useMemo(
    () => (shown && search.match ? find(shown, search.match) : null),
    [shown, search],
  );
  useEscape();

  const unit = tree?.unit ?? types.data?.find((t) => t.name === s.type)?.unit ?? "";
  const empty = tree !== null && tree.total === 0 && tree.baseTotal === 0;
  return (
    <div class="profile">
      <CaptureBar />
      {s.capture === "" && <Timeline unit={unit} told={profile.error?.message ?? ""} />}
      <Toolbar
        types={types.data}
        found={found}
        total={shown?.total ?? 0}
        searchError={search.error}
      />
      {s.diff && <Compare />}
      {profile.error && <Failure error={profile.error} retry={profile.reload} />}
      {types.error && !profile.error && <Failure error={types.error} retry={types.reload} />}
      {data && !empty && <Summary profile={data} kept={kept.data} />}
      {!data && profile.loading && <p class="faint pad loading">fetching samples…</p>}
      {empty && !stale && <Empty nodes={nodes} types={types.data} />}
      {data && shown && !empty && (
        <Panes profile={data} shown={shown} found={found} match={search.match} stale={stale} />
      )}
    </div>
  );
}

interface SummaryProps {
  profile: Profile;
  kept: ReadonlyMap<string, number> | null;
}

/** The whole in one line, and loud, what it lacks. */
function Summary({ profile, kept }: SummaryProps) {
  const { tree, cut, seconds } = profile;
  return (
    <div class="summary">
      <span data-total>
        <b class="num">{format.value(tree.total, tree.unit)}</b> {tree.type}
      </span>
      {tree.baseValue ? (
        <Against tree={tree} />
      ) : (
        seconds > 0 && (
          <span class="faint num">
            {format.perRange(tree.total, tree.unit, tree.type, seconds)} over{" "}
            {format.nanoseconds(seconds * 1e9)}
          </span>
        )
      )}
      <span class="faint num">{format.whole(tree.size - 1)} frames</span>
      {cut && (
        <span class="cut" title="The answer is bounded. Narrow the query or the range to see them.">
          {format.whole(cut.nodes)} small frames put together,{" "}
          {format.percent(cut.value, tree.total)}
        </span>
      )}
      <Losses losses={profile.losses} kept={kept} />
      {!tree.baseValue && <Legend profile={profile} />}
    </div>
  );
}

/** The base's total, or which side has no samples. */
function Against({ tree }: { tree: Tree }) {
  if (tree.total > 0 && tree.baseTotal > 0) {
    return <span class="faint num">against {format.value(tree.baseTotal, tree.unit)}</span>;
  }
  return (
    <span class="cut">
      {tree.total > 0 ? "The base has" : "This side has"} no samples: there is nothing to compare.
    </span>
  );
}

/** Escape, wherever no one else wants it, shows everything. */
function useEscape(): void {
  const store = useStore();
  useEffect(() => {
    const onEscape = (e: KeyboardEvent) => {
      const typing = (e.target as Element).closest?.("input, select, textarea");
      if (e.key === "Escape" && !typing && !e.defaultPrevented) store.patch({ zoom: "" });
    };
    document.addEventListener("keydown", onEscape);
    return () => document.removeEventListener("keydown", onEscape);
  }, [store]);
}
