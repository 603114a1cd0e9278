// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import type { Node } from "../api/answers";
import * as api from "../api/client";
import { durationMs } from "../state/time";

const HIGHEST_HZ = 997;

interface FormProps {
  nodes: Node[];
  onStarted(id: string): void;
}

/** Orders a capture of kind cpu. */
export function CaptureForm({ nodes, onStarted }: FormProps) {
  const first = nodes.find((n) => n.connected)?.name;
  const [chosen, setChosen] = useState<string[] | null>(null);
  const [pids, setPids] = useState("");
  const [duration, setDuration] = useState("10s");
  const [hz, setHz] = useState("99");
  const [sending, setSending] = useState(false);
  const [refused, setRefused] = useState("");

  const targets = chosen ?? (first ? [first] : []);
  const order = { nodes: targets, pids: pidsOf(pids), duration: duration.trim(), hz: Number(hz) };
  const wrong = mistake(order, pids);
  const start = async () => {
    setSending(true);
    setRefused("");
    try {
      onStarted((await api.startCapture(order)).id);
    } catch (e) {
      setRefused(e instanceof Error ? e.message : String(e));
    } finally {
      setSending(false);
    }
  };

  return (
    <form
      class="capture-form"
      aria-label="start a cpu capture"
      onInput={() => setRefused("")} // it was said of another order
      onSubmit={(e) => {
        e.preventDefault();
        if (!wrong && !sending) start();
      }}
    >
      <fieldset class="targets">
        <legend>nodes</legend>
        <div class="targets-list">
          {nodes.map((n) => (
            <label key={n.name} class={n.connected ? "" : "faint"}>
              <input
                type="checkbox"
                name="node"
                value={n.name}
                checked={targets.includes(n.name)}
                onChange={(e) => {
                  const rest = targets.filter((t) => t !== n.name);
                  setChosen(e.currentTarget.checked ? [...rest, n.name] : rest);
                }}
              />
              {n.name}
              {!n.connected && " (not connected)"}
            </label>
          ))}
          {nodes.length === 0 && <span class="faint">No node has connected yet.</span>}
        </div>
      </fieldset>
      <label>
        <span>pids</span>
        <input
          type="text"
          name="pids"
          placeholder="all processes"
          value={pids}
          onInput={(e) => setPids(e.currentTarget.value)}
        />
      </label>
      <label>
        <span>duration</span>
        <input
          type="text"
          name="duration"
          size={6}
          value={duration}
          onInput={(e) => setDuration(e.currentTarget.value)}
        />
      </label>
      <label>
        <span>samples a second</span>
        <input
          type="number"
          name="hz"
          min={1}
          max={HIGHEST_HZ}
          value={hz}
          onInput={(e) => setHz(e.currentTarget.value)}
        />
      </label>
      <button type="submit" class="primary" disabled={wrong !== "" || sending}>
        {sending ? "starting…" : "start cpu capture"}
      </button>
      {wrong && <p class="faint">{wrong}</p>}
      {refused && (
        <p class="query-error" role="alert">
          {refused}
        </p>
      )}
    </form>
  );
}

function pidsOf(text: string): number[] {
  return text
    .split(/[\s,]+/)
    .filter(Boolean)
    .map(Number);
}

/** What has to be put right before the order can go out; what the server refuses it says itself. */
export function mistake(order: api.CaptureOrder, pids: string): string {
  if (order.nodes.length === 0) return "Choose one node or more.";
  if (order.pids.some((p) => !Number.isInteger(p) || p < 1)) {
    return `${JSON.stringify(pids)} is no list of process ids: write 4711, 4712.`;
  }
  if (!(durationMs(order.duration) > 0)) {
    return `${JSON.stringify(order.duration)} is no duration: write 10s or 1m30s.`;
  }
  if (!(order.hz >= 1 && order.hz <= HIGHEST_HZ)) {
    return `Choose 1 to ${HIGHEST_HZ} samples a second.`;
  }
  return "";
}
