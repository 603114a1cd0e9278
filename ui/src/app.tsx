// SPDX-License-Identifier: Apache-2.0
import { useEffect } from "preact/hooks";
import type { Node } from "./api/answers";
import * as api from "./api/client";
import { CapturesView } from "./captures/view";
import { NodesView } from "./nodes/view";
import { ProfileView } from "./profile/view";
import { QueryBar } from "./query/querybar";
import { TimePicker } from "./query/timepicker";
import { type Loaded, useLoad } from "./state/load";
import { useStore } from "./state/store";
import type { State } from "./state/url";

const NODES_MS = 10_000;

const VIEWS: [State["view"], string][] = [
  ["profile", "Profile"],
  ["captures", "Captures"],
  ["nodes", "Nodes"],
];

export function App() {
  const store = useStore();
  const { view } = store.state.value;
  const nodes = useNodes();
  return (
    <>
      <header class="head">
        <a
          class="brand"
          href={store.link({ view: "profile" })}
          onClick={within(() => store.patch({ view: "profile" }))}
        >
          <img src="./favicon.svg" alt="" width="16" height="16" /> diagon
        </a>
        <nav class="views" aria-label="views">
          {VIEWS.map(([v, label]) => (
            <a
              key={v}
              href={store.link({ view: v })}
              aria-current={v === view ? "page" : undefined}
              onClick={within(() => store.patch({ view: v }))}
            >
              {label}
              {v === "nodes" && nodes.data && <NodeCount nodes={nodes.data} />}
            </a>
          ))}
        </nav>
        {view === "profile" && <TimePicker />}
        {nodes.error && (
          <span class="head-error" role="alert" title={nodes.error.message}>
            {nodes.error instanceof api.UnreachableError
              ? "server unreachable"
              : nodes.error.message}
            <button type="button" class="link" onClick={nodes.reload}>
              try again
            </button>
          </span>
        )}
      </header>
      <main>
        {view === "profile" && <QueryBar />}
        {view === "profile" && <ProfileView nodes={nodes.data} />}
        {view === "captures" && <CapturesView nodes={nodes.data} />}
        {view === "nodes" && <NodesView nodes={nodes} />}
      </main>
    </>
  );
}

/** Follows a link inside the page, unless another tab or window is asked for. */
function within(go: () => void) {
  return (e: MouseEvent) => {
    if (e.button !== 0 || e.ctrlKey || e.metaKey || e.shiftKey) return;
    e.preventDefault();
    go();
  };
}

function NodeCount({ nodes }: { nodes: Node[] }) {
  const there = nodes.filter((n) => n.connected).length;
  return (
    <span
      class={there < nodes.length ? "badge warn" : "badge"}
      title={`${there} of ${nodes.length} connected`}
    >
      {there === nodes.length ? there : `${there}/${nodes.length}`}
    </span>
  );
}

/** The nodes, fetched anew now and then: whether they are there is of interest on every view. */
function useNodes(): Loaded<Node[]> {
  const loaded = useLoad((signal) => api.nodes(signal), "nodes", useStore().tick.value);
  const { reload } = loaded;
  useEffect(() => {
    const timer = setInterval(reload, NODES_MS);
    return () => clearInterval(timer);
  }, [reload]);
  return loaded;
}
