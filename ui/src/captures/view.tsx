// SPDX-License-Identifier: Apache-2.0
import { useEffect } from "preact/hooks";
import type { Node } from "../api/answers";
import * as api from "../api/client";
import { Failure, Notice } from "../parts/notice";
import { useLoad } from "../state/load";
import { useStore } from "../state/store";
import { CaptureForm } from "./form";
import { CaptureList } from "./list";
import { underWay } from "./states";

const BUSY_MS = 1000;
const QUIET_MS = 10_000;

export function CapturesView({ nodes }: { nodes: Node[] | null }) {
  const store = useStore();
  const loaded = useLoad((signal) => api.captures(signal), "captures", store.tick.value);
  const { reload, loading } = loaded;
  const busy = loaded.data?.some(underWay) ?? false;
  useEffect(() => {
    if (loading) return;
    const timer = setTimeout(reload, busy ? BUSY_MS : QUIET_MS);
    return () => clearTimeout(timer);
  }, [loading, busy, reload]);

  return (
    <div class="page">
      <CaptureForm
        nodes={nodes ?? []}
        onStarted={(id) => {
          store.patch({ open: id });
          reload();
        }}
      />
      {loaded.error && <Failure error={loaded.error} retry={reload} />}
      {loaded.data && loaded.data.length > 0 && (
        <CaptureList captures={loaded.data} reload={reload} />
      )}
      {loaded.data?.length === 0 && (
        <Notice title="No captures yet">
          <p>
            A capture samples one node, or a few of its processes, at a higher rate for a short
            time. Start one above, or by{" "}
            <code>diagon capture --node NODE --kind cpu --duration 10s</code>.
          </p>
        </Notice>
      )}
    </div>
  );
}
