// SPDX-License-Identifier: Apache-2.0
import type { Node } from "../api/answers";
import { Failure, Notice } from "../parts/notice";
import type { Loaded } from "../state/load";
import { NodeCard } from "./card";

export function NodesView({ nodes }: { nodes: Loaded<Node[]> }) {
  const all = (nodes.data ?? []).toSorted(
    (a, b) => Number(a.connected) - Number(b.connected) || a.name.localeCompare(b.name),
  );
  const away = all.filter((n) => !n.connected).length;
  return (
    <div class="page">
      {nodes.error && <Failure error={nodes.error} retry={nodes.reload} />}
      {nodes.data?.length === 0 && (
        <Notice title="No node has connected yet">
          <p>On a machine that is to be profiled, as root:</p>
          <pre>diagon agent --channel {location.hostname || "HOST"}:7171/diagnostics</pre>
        </Notice>
      )}
      {all.length > 0 && (
        <p class="faint nodes-count">
          {all.length} {all.length === 1 ? "node" : "nodes"}
          {away > 0 && `, ${away} not connected`}
        </p>
      )}
      <ul class="nodes" aria-label="nodes">
        {all.map((n) => (
          <NodeCard key={n.name} node={n} alone={all.length <= 3} />
        ))}
      </ul>
    </div>
  );
}
