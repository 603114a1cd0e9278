// SPDX-License-Identifier: Apache-2.0
// One function between those who call it, above, and what it calls, below.

import { useMemo, useState } from "preact/hooks";
import { Flame } from "../flame/flame";
import { callees, callers, functionsNamed } from "../flame/transform";
import type { Tree } from "../flame/tree";
import * as format from "../format";
import { Notice } from "../parts/notice";
import { useStore } from "../state/store";
import { totalOf } from "../table/rows";
import type { Profile } from "./load";

interface SandwichProps {
  profile: Profile;
  marked: Uint8Array | null;
}

export function Sandwich({ profile, marked }: SandwichProps) {
  const { fn } = useStore().state.value;
  const { tree, cut } = profile;
  const [above, below] = useMemo(() => {
    const own = functionsNamed(tree, fn);
    return [callers(tree, own), callees(tree, own)];
  }, [tree, fn]);

  if (fn === "") {
    return (
      <Notice title="No function is chosen">
        <p>Click ⇅ beside a function in the table, or a function in the table.</p>
      </Notice>
    );
  }
  if (above.total === 0 && above.baseTotal === 0) {
    return (
      <Notice
        title={cut ? `No frame that is drawn is of ${fn}` : `No stack in this range has ${fn}`}
      >
        <p>
          Choose another function in the table, or {cut ? "narrow the query" : "widen the range"}.
        </p>
      </Notice>
    );
  }
  // The rows know what a cut tree has put together, but not of a diff.
  const exact = cut && profile.exact ? totalOf(profile.rows, fn) : null;
  const share = format.percent(exact ?? above.total, tree.total);
  return (
    <div class="sandwich">
      <p class="sandwich-label">
        callers of <b>{fn}</b> <span class="faint num">in {share} of all</span>{" "}
        {cut && (
          <span class="faint">
            {exact === null
              ? "as far as its frames are drawn"
              : "below, of the frames that are drawn"}
          </span>
        )}
      </p>
      <Half
        tree={above}
        label={`callers of ${fn}`}
        upward
        marked={marked}
        seconds={profile.seconds}
      />
      <p class="sandwich-label">callees</p>
      <Half tree={below} label={`callees of ${fn}`} marked={marked} seconds={profile.seconds} />
    </div>
  );
}

interface HalfProps {
  tree: Tree;
  label: string;
  upward?: boolean;
  marked: Uint8Array | null;
  seconds: number;
}

/** Each half zooms by itself; the function itself, and not the halves' zoom, is in the address. */
function Half(p: HalfProps) {
  const [zoom, setZoom] = useState("");
  return <Flame {...p} rootless zoom={zoom} onZoom={setZoom} />;
}
