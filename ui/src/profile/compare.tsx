// SPDX-License-Identifier: Apache-2.0
// What a diff is against.

import { useEffect, useState } from "preact/hooks";
import { clock } from "../format";
import { Popover } from "../parts/popover";
import { parseQuery } from "../query/matchers";
import { Absolute } from "../query/timepicker";
import { useStore } from "../state/store";
import { ends } from "../state/time";
import { baseOf } from "./load";

export function Compare() {
  const store = useStore();
  const s = store.state.value;
  const base = baseOf(s, Date.now());
  const own = s.base_from !== "" || s.base_to !== "";
  const at = ends(base, Date.now());
  return (
    <div class="compare">
      <span>compared with</span>
      <Popover
        name="base range"
        label={`${own ? "" : "the range before: "}${clock(at.from)} – ${clock(at.to)}`}
      >
        {(close) => (
          <Absolute
            range={{ from: base.from, to: base.to }}
            close={close}
            onRange={(r) => store.patch({ base_from: r.from, base_to: r.to, zoom: "" })}
          />
        )}
      </Popover>
      {own && (
        <button
          type="button"
          class="small"
          onClick={() => store.patch({ base_from: "", base_to: "", zoom: "" })}
        >
          the range before
        </button>
      )}
      <BaseQuery />
      <span class="stretch" />
      <span class="diff-scale" aria-hidden="true">
        <span class="less">less</span>
        <i />
        <span class="more">more</span>
      </span>
      <span class="faint">a frame is as wide as the mean of both shares</span>
    </div>
  );
}

function BaseQuery() {
  const store = useStore();
  const { base_query, query } = store.state.value;
  const [text, setText] = useState(base_query);
  useEffect(() => setText(base_query), [base_query]);
  const error = errorOf(text);
  const carryOut = () => {
    if (!error && text.trim() !== base_query) store.patch({ base_query: text.trim(), zoom: "" });
  };
  return (
    <div class="query-text">
      <input
        type="text"
        class="mono"
        spellcheck={false}
        aria-label="base query"
        aria-invalid={error !== ""}
        placeholder={query ? `as here: ${query}` : "another query"}
        value={text}
        onInput={(e) => setText(e.currentTarget.value)}
        onChange={carryOut}
        onKeyDown={(e) => e.key === "Enter" && carryOut()}
      />
      {error && (
        <p class="query-error" role="alert">
          {error}
        </p>
      )}
    </div>
  );
}

function errorOf(text: string): string {
  try {
    parseQuery(text);
    return "";
  } catch (e) {
    return e instanceof Error ? e.message : String(e);
  }
}
