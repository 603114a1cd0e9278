// SPDX-License-Identifier: Apache-2.0
// There are no samples to show: why, and what to do about it.

import type { Node, SampleType } from "../api/answers";
import { ago } from "../format";
import { Notice } from "../parts/notice";
import { useStore } from "../state/store";
import { durationMs, ends } from "../state/time";

interface EmptyProps {
  nodes: Node[] | null;
  types: SampleType[] | null;
}

export function Empty({ nodes, types }: EmptyProps) {
  const { type } = useStore().state.value;
  if (nodes && nodes.length === 0) return <NoNode />;
  return (
    <Notice title={`No ${type} samples here`}>
      <OtherTypes types={types} />
      <OtherRange />
      <OtherQuery />
      <Away nodes={nodes} />
    </Notice>
  );
}

function NoNode() {
  return (
    <Notice title="No node has connected yet">
      <p>Profiles come from agents. On a machine that is to be profiled, as root:</p>
      <pre>diagon agent --channel {location.hostname || "HOST"}:7171/diagnostics</pre>
      <p>
        Or start this server with <code>--local-agent</code> to profile the machine it runs on.{" "}
        <code>diagon doctor</code> says what an agent can see there, and why not what it cannot.
      </p>
    </Notice>
  );
}

function OtherTypes({ types }: { types: SampleType[] | null }) {
  const store = useStore();
  const { type } = store.state.value;
  const others = (types ?? []).filter((t) => t.name !== type);
  if (others.length === 0) return null;
  return (
    <p>
      The same range and query have:{" "}
      {others.map((t) => (
        <button type="button" key={t.name} onClick={() => store.patch({ type: t.name, zoom: "" })}>
          {t.name}
        </button>
      ))}
    </p>
  );
}

function OtherRange() {
  const store = useStore();
  const { from, to, capture } = store.state.value;
  if (capture) {
    return (
      <p>
        Only the samples of capture <code>{capture}</code> are shown.{" "}
        <button type="button" onClick={() => store.patch({ capture: "" })}>
          show the always-on profile
        </button>
      </p>
    );
  }
  const range = ends({ from, to }, Date.now());
  const longer = ["1h", "6h", "24h", "7d"].filter(
    (d) => durationMs(d) > 1.1 * (range.to - range.from),
  );
  return (
    <p>
      Widen the range to the last{" "}
      {longer.map((d) => (
        <button
          type="button"
          key={d}
          onClick={() => store.patch({ from: `now-${d}`, to: "now", zoom: "" })}
        >
          {d}
        </button>
      ))}
    </p>
  );
}

function OtherQuery() {
  const store = useStore();
  const { query } = store.state.value;
  if (!query) return null;
  return (
    <p>
      Only what matches <code>{query}</code> is shown.{" "}
      <button type="button" onClick={() => store.patch({ query: "", zoom: "" })}>
        show everything
      </button>
    </p>
  );
}

function Away({ nodes }: { nodes: Node[] | null }) {
  const away = (nodes ?? []).filter((n) => !n.connected);
  if (away.length === 0) return null;
  return (
    <p>
      Not connected:{" "}
      {away
        .slice(0, 5)
        .map((n) => `${n.name} (last heard of ${ago(Date.parse(n.lastHeartbeat))})`)
        .join(", ")}
      {away.length > 5 && `, and ${away.length - 5} more`}.
    </p>
  );
}
