// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import type { Capture, Target } from "../api/answers";
import * as api from "../api/client";
import * as format from "../format";
import { useStore } from "../state/store";
import { formatDuration, formatTime } from "../state/time";
import { hasProfile, tone, underWay } from "./states";

export function CaptureList({ captures, reload }: { captures: Capture[]; reload(): void }) {
  return (
    <ul class="captures" aria-label="captures">
      {captures.map((c) => (
        <CaptureItem key={c.id} capture={c} reload={reload} />
      ))}
    </ul>
  );
}

function CaptureItem({ capture: c, reload }: { capture: Capture; reload(): void }) {
  const store = useStore();
  const open =
    store.state.value.open === c.id ||
    underWay(c) ||
    c.targets.length === 1 ||
    tone(c.state) === "bad";
  const [refused, setRefused] = useState("");
  const cancel = async () => {
    setRefused("");
    try {
      await api.cancelCapture(c.id);
    } catch (e) {
      setRefused(e instanceof Error ? e.message : String(e));
    }
    reload();
  };
  const nodes = c.targets.map((t) => t.node);
  return (
    <li class="capture" data-capture={c.id} data-state={c.state}>
      <div class="capture-head">
        <State state={c.state} />
        <b>{c.kind}</b>
        <span>
          {nodes.slice(0, 3).join(", ")}
          {nodes.length > 3 && ` and ${nodes.length - 3} more`}
        </span>
        <span class="faint num">
          {formatDuration(c.durationMs)} at {format.digits(c.hz)} Hz
        </span>
        <time class="faint num" dateTime={c.created} title={c.created}>
          {format.clock(Date.parse(c.created))}
        </time>
        <code class="faint">{c.id}</code>
        <span class="stretch" />
        {hasProfile(c) && (
          <button type="button" onClick={() => store.patch(profileOf(c))}>
            flame graph
          </button>
        )}
        {underWay(c) && (
          <button type="button" onClick={cancel}>
            cancel
          </button>
        )}
        {c.targets.length > 1 && !underWay(c) && tone(c.state) !== "bad" && (
          <button
            type="button"
            aria-expanded={open}
            onClick={() => store.patch({ open: open ? "" : c.id })}
          >
            {open ? "less" : "targets"}
          </button>
        )}
      </div>
      {c.message && <p>{c.message}</p>}
      {refused && (
        <p class="query-error" role="alert">
          {refused}
        </p>
      )}
      {open && (
        <ul class="capture-targets">
          {c.targets.map((t) => (
            <TargetItem key={t.node} id={c.id} target={t} said={c.message} />
          ))}
        </ul>
      )}
    </li>
  );
}

function TargetItem({ id, target: t, said }: { id: string; target: Target; said: string }) {
  return (
    <li>
      <State state={t.state} />
      <span>{t.node}</span>
      {t.pids.length > 0 && <span class="faint num">pids {t.pids.join(", ")}</span>}
      {t.message && t.message !== said && <span>{t.message}</span>}
      {t.artifacts.map((a) => (
        <a key={a.name} href={api.artifactAddress(id, a.name)} download={a.name}>
          {a.name} <span class="faint num">{format.bytes(a.size)}</span>
        </a>
      ))}
    </li>
  );
}

function State({ state }: { state: string }) {
  return <span class={`state ${tone(state)}`}>{state.toLowerCase().replace("_", " ")}</span>;
}

/** How long after its end a capture's samples may still be said to arrive. */
const SLACK_MS = 60_000;

/** The state in which the page shows a capture's samples. */
function profileOf(c: Capture) {
  const start = Date.parse(c.start || c.created);
  return {
    view: "profile" as const,
    capture: c.id,
    query: "",
    type: "cpu",
    from: formatTime(start - SLACK_MS),
    to: formatTime(start + c.durationMs + 2 * SLACK_MS),
    live: 0,
    zoom: "",
    diff: false,
  };
}
