// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import { clock } from "../format";
import { Popover } from "../parts/popover";
import { useStore } from "../state/store";
import { ends, formatTime, rangeError, shifted, widened } from "../state/time";

const RELATIVE = ["5m", "15m", "1h", "6h", "24h"];
const LIVE_SECONDS = 10; // as often as agents send

/** Which range is looked at, and whether it runs along with the time. */
export function TimePicker() {
  const store = useStore();
  const { from, to, live } = store.state.value;
  const range = { from, to };
  const relative = to === "now" && /^now-(\d+[smhd])$/.exec(from)?.[1];
  const set = (next: { from: string; to: string }) => store.patch({ ...next, live: 0, zoom: "" });

  return (
    <div class="times">
      <div class="choice" role="group" aria-label="range">
        {RELATIVE.map((r) => (
          <button
            type="button"
            key={r}
            aria-pressed={relative === r}
            title={`the last ${r}`}
            onClick={() => store.patch({ from: `now-${r}`, to: "now" })}
          >
            {r}
          </button>
        ))}
        <Popover
          name="absolute range"
          class={relative && RELATIVE.includes(relative) ? "" : "on"}
          label={relative && RELATIVE.includes(relative) ? "range…" : label(range)}
          title="choose from and to"
        >
          {(close) => <Absolute range={range} onRange={set} close={close} />}
        </Popover>
      </div>
      <div class="choice" role="group" aria-label="move the range">
        <button
          type="button"
          title="earlier"
          aria-label="earlier"
          onClick={() => set(shifted(range, -0.5, Date.now()))}
        >
          ‹
        </button>
        <button
          type="button"
          title="twice the range"
          aria-label="twice the range"
          onClick={() => set(widened(range, Date.now()))}
        >
          −
        </button>
        <button
          type="button"
          title="later"
          aria-label="later"
          onClick={() => set(shifted(range, 0.5, Date.now()))}
        >
          ›
        </button>
      </div>
      <button
        type="button"
        class={live ? "live on" : "live"}
        aria-pressed={live > 0}
        title={`fetch anew every ${live || LIVE_SECONDS} s`}
        onClick={() => {
          if (live > 0) store.patch({ live: 0 });
          else
            store.patch(
              to === "now"
                ? { live: LIVE_SECONDS }
                : { from: "now-15m", to: "now", live: LIVE_SECONDS },
            );
        }}
      >
        <i /> live
      </button>
      <button
        type="button"
        title="fetch anew"
        aria-label="refresh"
        onClick={() => store.tick.value++}
      >
        ⟳
      </button>
    </div>
  );
}

function label(range: { from: string; to: string }): string {
  if (range.to === "now" && range.from.startsWith("now-")) return `last ${range.from.slice(4)}`;
  const { from, to } = ends(range, Date.now());
  return `${clock(from)} – ${clock(to)}`;
}

interface AbsoluteProps {
  range: { from: string; to: string };
  onRange(range: { from: string; to: string }): void;
  close(): void;
}

/** From and to, by the browser's own clock picker or as the API writes times. */
export function Absolute({ range, onRange, close }: AbsoluteProps) {
  const [own, setOwn] = useState(range);
  const error = rangeError(own, Date.now());
  const field = (key: "from" | "to") => (
    <div class="field">
      <span>{key}</span>
      <input
        type="text"
        class="mono"
        aria-label={`${key} as text`}
        value={own[key]}
        onInput={(e) => setOwn({ ...own, [key]: e.currentTarget.value })}
      />
      <input
        type="datetime-local"
        step="1"
        aria-label={`${key} by the clock`}
        value={local(ends(own, Date.now())[key])}
        onInput={(e) => {
          const ms = new Date(e.currentTarget.value).getTime();
          if (!Number.isNaN(ms)) setOwn({ ...own, [key]: formatTime(ms) });
        }}
      />
    </div>
  );
  return (
    <form
      class="absolute"
      onSubmit={(e) => {
        e.preventDefault();
        if (error) return;
        onRange({ from: own.from.trim(), to: own.to.trim() });
        close();
      }}
    >
      {field("from")}
      {field("to")}
      <p class={error ? "query-error" : "faint"}>
        {error || "now-2h · 2026-01-31T12:00:00Z · Unix seconds"}
      </p>
      <button type="submit" disabled={error !== ""}>
        show
      </button>
    </form>
  );
}

/** As the browser's picker takes it: local time without a zone. */
function local(ms: number): string {
  const at = new Date(ms);
  return new Date(ms - at.getTimezoneOffset() * 60e3).toISOString().slice(0, 19);
}
