// SPDX-License-Identifier: Apache-2.0
// What the profile page fetches for a state.

import type { Capture } from "../api/answers";
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
  seconds: number; // that were sampled: what a rate is over; NaN where that is not known
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
  const [fg, capture] = await Promise.all([
    s.diff
      ? api.diff(s.type, selection, baseOf(s, now), MAX_NODES, signal)
      : api.flamegraph(s.type, selection, MAX_NODES, signal),
    s.capture ? captureOf(s.capture, signal) : undefined,
  ]);
  const tree = fromFlamegraph(fg);
  // A cut tree does not know all functions: the server adds them up then.
  const ask = fg.cut !== null && !s.diff;
  const rows = ask ? rowsOfTop(await api.top(s.type, selection, signal)) : rowsOf(tree);
  const seconds = sampledSeconds(fg, capture);
  return { tree, rows, exact: fg.cut === null || ask, cut: fg.cut, losses: fg.losses, seconds };
}

/** The capture, or null when the server keeps its samples but no longer knows it. */
async function captureOf(id: string, signal: AbortSignal): Promise<Capture | null> {
  try {
    return await api.capture(id, signal);
  } catch (e) {
    if (e instanceof api.ApiError && e.status === 404) return null;
    throw e;
  }
}

/** The range's length; of a capture (null: unknown) its own, for the range around it has slack. */
export function sampledSeconds(
  range: { from: number; to: number },
  capture?: Pick<Capture, "durationMs"> | null,
): number {
  if (capture === null) return Number.NaN;
  return Math.min(range.to - range.from, capture?.durationMs ?? Number.POSITIVE_INFINITY) / 1000;
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
