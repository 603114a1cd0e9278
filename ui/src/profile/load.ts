// SPDX-License-Identifier: Apache-2.0
// What the profile page fetches for a state.

import * as api from "../api/client";
import type { Cut, Loss } from "../api/profile";
import { fromFlamegraph, type Tree } from "../flame/tree";
import { nodesOnly } from "../query/matchers";
import { ends, rangeBefore } from "../state/time";
import type { State } from "../state/url";
import { type Row, rowsOf, rowsOfTop } from "../table/rows";
import { stepSeconds } from "../timeline/lines";

/** More than the server gives unasked: a canvas draws as many in a quarter of a frame's time. */
const MAX_NODES = 16_384;

export interface Profile {
  tree: Tree;
  rows: Row[];
  exact: boolean; // the rows know all functions, also those that the tree was cut of
  cut: Cut | null;
  losses: Loss[];
  seconds: number;
}

export function selectionOf(s: State): api.Selection {
  const { query, from, to, capture } = s;
  return { query, from, to, capture: capture || undefined };
}

/** The other side of a diff: what is not chosen is as on this side, the range just before. */
export function baseOf(s: State, now: number): api.Selection {
  const range = rangeBefore(s, now);
  return {
    query: s.base_query || s.query,
    from: s.base_from || range.from,
    to: s.base_to || range.to,
  };
}

export async function loadProfile(s: State, signal: AbortSignal): Promise<Profile> {
  const selection = selectionOf(s);
  const now = Date.now();
  const fg = s.diff
    ? await api.diff(s.type, selection, baseOf(s, now), MAX_NODES, signal)
    : await api.flamegraph(s.type, selection, MAX_NODES, signal);
  const tree = fromFlamegraph(fg);
  // A cut tree does not know all functions: the server adds them up then.
  const ask = fg.cut !== null && !s.diff;
  const rows = ask ? rowsOfTop(await api.top(s.type, selection, signal)) : rowsOf(tree);
  const seconds = (fg.to - fg.from) / 1000;
  return { tree, rows, exact: fg.cut === null || ask, cut: fg.cut, losses: fg.losses, seconds };
}

/** How many samples each node kept in the range: what its losses are a share of. */
export async function loadKept(s: State, signal: AbortSignal): Promise<Map<string, number>> {
  const { from, to } = ends(s, Date.now());
  const step = stepSeconds((to - from) / 1000);
  const selection = { query: nodesOnly(s.query), from: s.from, to: s.to };
  const { series } = await api.series("samples", selection, `${step}s`, signal);
  return new Map(
    series.map((one) => [one.labels.node ?? "", step * one.values.reduce((a, b) => a + b, 0)]),
  );
}
