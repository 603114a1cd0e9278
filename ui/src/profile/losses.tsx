// SPDX-License-Identifier: Apache-2.0
// What was lost while these samples were taken, beside them: a graph that lacks a part says so.

import type { Loss } from "../api/profile";
import * as format from "../format";

/** More than these are put together. */
const MOST = 4;

interface LossesProps {
  losses: Loss[];
  kept: ReadonlyMap<string, number> | null; // samples by node; null: not known, or of two ranges
}

export function Losses({ losses, kept }: LossesProps) {
  const some = byPlace(losses);
  if (some.length === 0) return null;
  const rest = some.slice(MOST);
  return (
    <div class="losses" role="status" aria-label="losses">
      {some.slice(0, MOST).map((l) => (
        <span key={`${l.node} ${l.place}`}>{sentence(l, kept?.get(l.node))}</span>
      ))}
      {rest.length > 0 && (
        <span title={rest.map((l) => sentence(l, kept?.get(l.node))).join("\n")}>
          and at {rest.length} more places {format.whole(rest.reduce((n, l) => n + l.count, 0))}
        </span>
      )}
    </div>
  );
}

/** Losses of one place on one node added up, the greatest first: a diff tells of each side. */
export function byPlace(losses: Loss[]): Loss[] {
  const sums = new Map<string, Loss>();
  for (const l of losses) {
    const key = `${l.node}\0${l.place}`;
    sums.set(key, { ...l, count: l.count + (sums.get(key)?.count ?? 0) });
  }
  return [...sums.values()].filter((l) => l.count > 0).sort((a, b) => b.count - a.count);
}

/** Places where a sample loses its names and is kept: its process had ended, or become another. */
const NAMELESS = new Set(["exited", "exec"]);

export function isNameless(place: string): boolean {
  return NAMELESS.has(place);
}

/** How many samples were lost, and how many are kept without names. */
export function addUp(losses: Pick<Loss, "place" | "count">[]): { lost: number; nameless: number } {
  const sum = { lost: 0, nameless: 0 };
  for (const l of losses) sum[isNameless(l.place) ? "nameless" : "lost"] += l.count;
  return sum;
}

/** "2.1 % lost at ring on node-17 (1 234)", "2.1 % without names at exited on node-17 (1 234)". */
export function sentence(l: Loss, kept: number | undefined): string {
  const nameless = isNameless(l.place);
  const what = nameless ? "without names" : "lost";
  const where = `${what} at ${l.place}${l.node ? ` on ${l.node}` : ""}`;
  if (!kept) return `${format.whole(l.count)} ${where}`;
  const all = nameless ? kept : l.count + kept;
  return `${format.percent(l.count, all)} ${where} (${format.whole(l.count)})`;
}
