// SPDX-License-Identifier: Apache-2.0
// Picking labels and their values from those that the range has.

import { useEffect, useRef, useState } from "preact/hooks";
import * as api from "../api/client";
import { Failure } from "../parts/notice";
import { Popover } from "../parts/popover";
import { useLoad } from "../state/load";
import { useStore } from "../state/store";
import { formatQuery, type Matcher, picked } from "./matchers";

interface ValuePickerProps {
  name: string;
  matchers: Matcher[];
  onPick(values: string[]): void;
}

/** A label's values, among what the other matchers leave. */
export function ValuePicker({ name, matchers, onPick }: ValuePickerProps) {
  const { from, to } = useStore().state.value;
  const [filter, setFilter] = useState("");
  const filterBox = useRef<HTMLInputElement>(null);
  useEffect(() => filterBox.current?.focus(), []);
  const query = formatQuery(matchers.filter((m) => m.name !== name));
  const selection = { query, from, to };
  const loaded = useLoad(
    (s) => api.labelValues(name, selection, s),
    JSON.stringify([name, selection]),
  );
  const chosen = picked(matchers, name) ?? [];
  const known = loaded.data?.values ?? [];
  // What is picked stays in the list, so that it can be unpicked when it has no data now.
  const all = [...new Set([...chosen, ...known])];
  const shown = all.filter((v) => v.toLowerCase().includes(filter.toLowerCase()));
  const toggle = (value: string) =>
    onPick(chosen.includes(value) ? chosen.filter((v) => v !== value) : [...chosen, value]);

  return (
    <div class="picker">
      <input
        type="text"
        placeholder={`filter ${name}`}
        aria-label={`filter values of ${name}`}
        value={filter}
        ref={filterBox}
        onInput={(e) => setFilter(e.currentTarget.value)}
        onKeyDown={(e) => {
          if (e.key === "Enter" && shown.length > 0) toggle(shown[0]);
        }}
      />
      <div class="picker-list">
        {shown.map((value) => (
          <label key={value}>
            <input
              type="checkbox"
              checked={chosen.includes(value)}
              onChange={() => toggle(value)}
              data-value={value}
            />
            <span>{value === "" ? "(empty)" : value}</span>
          </label>
        ))}
        {loaded.data && shown.length === 0 && (
          <p class="faint">
            {all.length === 0 ? `Nothing in this range has a label ${name}.` : "None matches."}
          </p>
        )}
        {loaded.loading && !loaded.data && <p class="faint">…</p>}
      </div>
      {loaded.error && <Failure error={loaded.error} retry={loaded.reload} />}
      {loaded.data?.cut && (
        <p class="faint">There are more: the first {known.length} are listed.</p>
      )}
      {chosen.length > 0 && (
        <button type="button" class="small" onClick={() => onPick([])}>
          any {name}
        </button>
      )}
    </div>
  );
}

/** Any further label. */
export function LabelPicker({
  taken,
  onPick,
}: {
  taken: string[];
  onPick(name: string, values: string[]): void;
}) {
  return (
    <Popover name="add label" class="chip add" label="+ label" title="pick another label">
      {() => <Labels taken={taken} onPick={onPick} />}
    </Popover>
  );
}

function Labels({
  taken,
  onPick,
}: {
  taken: string[];
  onPick(name: string, values: string[]): void;
}) {
  const { query, from, to } = useStore().state.value;
  const [name, setName] = useState("");
  const loaded = useLoad(
    (s) => api.labels({ query, from, to }, s),
    JSON.stringify([query, from, to]),
  );
  if (name !== "") {
    return <ValuePicker name={name} matchers={[]} onPick={(values) => onPick(name, values)} />;
  }
  const offered = (loaded.data ?? []).filter((l) => !taken.includes(l));
  return (
    <div class="picker">
      <div class="picker-list">
        {offered.map((l) => (
          <button type="button" class="link item" key={l} onClick={() => setName(l)}>
            {l}
          </button>
        ))}
        {loaded.data && offered.length === 0 && (
          <p class="faint">No further labels in this range.</p>
        )}
        {loaded.loading && !loaded.data && <p class="faint">…</p>}
      </div>
      {loaded.error && <Failure error={loaded.error} retry={loaded.reload} />}
    </div>
  );
}
