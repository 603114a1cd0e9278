// SPDX-License-Identifier: Apache-2.0
// What is looked at: chips to pick labels' values by, and the same as text.

import { useEffect, useState } from "preact/hooks";
import { Popover } from "../parts/popover";
import { useStore } from "../state/store";
import { formatQuery, type Matcher, parseQuery, pick, picked, QueryError } from "./matchers";
import { LabelPicker, ValuePicker } from "./picker";

/** Offered before any is picked: what one looks for first. */
const FIRST = ["node", "workload", "comm"];

export function QueryBar() {
  const store = useStore();
  const { query } = store.state.value;
  const parsed = parse(query);
  const set = (matchers: Matcher[]) => store.patch({ query: formatQuery(matchers), zoom: "" });
  const names = [...new Set([...FIRST, ...parsed.matchers.map((m) => m.name)])];

  return (
    <div class="query" role="search" aria-label="what is looked at">
      {!parsed.error &&
        names.map((name) => (
          <LabelChip
            key={name}
            name={name}
            matchers={parsed.matchers}
            onPick={(values) => set(pick(parsed.matchers, name, values))}
          />
        ))}
      {!parsed.error && (
        <LabelPicker
          taken={names}
          onPick={(name, values) => set(pick(parsed.matchers, name, values))}
        />
      )}
      <QueryText query={query} onQuery={(text) => store.patch({ query: text, zoom: "" })} />
    </div>
  );
}

function LabelChip({
  name,
  matchers,
  onPick,
}: {
  name: string;
  matchers: Matcher[];
  onPick(values: string[]): void;
}) {
  const values = picked(matchers, name);
  const active = values === null || values.length > 0;
  const text =
    values === null
      ? formatQuery(matchers.filter((m) => m.name === name)).slice(1, -1)
      : values.length > 2
        ? `${name}: ${values[0]} +${values.length - 1}`
        : `${name}: ${values.join(", ") || "any"}`;
  return (
    <Popover name={`label ${name}`} class={active ? "chip on" : "chip"} label={text}>
      {() => <ValuePicker name={name} matchers={matchers} onPick={onPick} />}
    </Popover>
  );
}

/** The query as text: carried out on Enter or when left, and only when it can be read. */
function QueryText({ query, onQuery }: { query: string; onQuery(text: string): void }) {
  const [text, setText] = useState(query);
  useEffect(() => setText(query), [query]);
  const { error } = parse(text);
  const carryOut = () => {
    if (parse(text).error || text.trim() === query) return;
    onQuery(text.trim() === "{}" ? "" : text.trim());
  };
  return (
    <div class="query-text">
      <input
        type="text"
        class="mono"
        spellcheck={false}
        autocomplete="off"
        aria-label="query"
        aria-invalid={error !== ""}
        placeholder='{comm="python3", rank=~"0|1"}'
        value={text}
        onInput={(e) => setText(e.currentTarget.value)}
        onChange={carryOut}
        onKeyDown={(e) => {
          if (e.key === "Enter") carryOut();
          if (e.key === "Escape") setText(query);
        }}
      />
      {error && (
        <p class="query-error" role="alert">
          {error}
        </p>
      )}
    </div>
  );
}

function parse(text: string): { matchers: Matcher[]; error: string } {
  try {
    return { matchers: parseQuery(text), error: "" };
  } catch (e) {
    if (!(e instanceof QueryError)) throw e;
    return { matchers: [], error: `at ${e.at + 1}: ${e.message}` };
  }
}
