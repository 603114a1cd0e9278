// SPDX-License-Identifier: Apache-2.0
// What is done with the samples that were chosen: which type, which way, what is searched.

import { useEffect, useRef } from "preact/hooks";
import type { SampleType } from "../api/answers";
import { exportAddress } from "../api/client";
import type { Found } from "../flame/search";
import * as format from "../format";
import { Choice } from "../parts/choice";
import { Popover } from "../parts/popover";
import { useStore } from "../state/store";
import { selectionOf } from "./load";

interface ToolbarProps {
  types: SampleType[] | null;
  found: Found | null;
  total: number;
  searchError: string;
}

export function Toolbar({ types, found, total, searchError }: ToolbarProps) {
  const store = useStore();
  const s = store.state.value;
  return (
    <div class="toolbar">
      <Types types={types} />
      <Choice
        name="shown"
        value={s.show}
        options={[
          ["flame", "flame graph"],
          ["both", "both"],
          ["table", "table"],
        ]}
        onChoose={(show) => store.patch({ show })}
      />
      <Choice
        name="direction"
        value={s.tree}
        options={[
          ["down", "callees", "from the outermost function down to what runs"],
          ["up", "inverted", "from what runs up to who called it"],
          ["sandwich", "sandwich", "callers and callees of one function"],
        ]}
        onChoose={(tree) => store.patch({ tree, zoom: "" })}
      />
      <Search found={found} total={total} error={searchError} />
      <span class="stretch" />
      <button
        type="button"
        aria-pressed={s.diff}
        title="set beside another range or query"
        disabled={s.capture !== ""}
        onClick={() => store.patch({ diff: !s.diff, zoom: "" })}
      >
        compare
      </button>
      <Popover name="export" label="export" title="the same samples in other formats">
        {() => (
          <ul class="menu">
            {["pprof", "speedscope", "folded", "top"].map((f) => (
              <li key={f}>
                <a href={exportAddress(s.type, selectionOf(s), f)} download={fileName(s.type, f)}>
                  {f}
                </a>
              </li>
            ))}
          </ul>
        )}
      </Popover>
    </div>
  );
}

const ENDINGS: Record<string, string> = {
  pprof: "pb.gz",
  speedscope: "speedscope.json",
  folded: "folded.txt",
  top: "top.json",
};

function fileName(type: string, f: string): string {
  return `diagon-${type}.${ENDINGS[f]}`;
}

function Types({ types }: { types: SampleType[] | null }) {
  const store = useStore();
  const { type } = store.state.value;
  const names = (types ?? []).map((t) => t.name);
  if (!names.includes(type)) names.unshift(type);
  return (
    <select
      aria-label="sample type"
      value={type}
      onChange={(e) => store.patch({ type: e.currentTarget.value, zoom: "" })}
    >
      {names.map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </select>
  );
}

function Search({ found, total, error }: { found: Found | null; total: number; error: string }) {
  const store = useStore();
  const { search } = store.state.value;
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const slash = (e: KeyboardEvent) => {
      const typing = (e.target as Element).closest?.("input, select, textarea");
      if (e.key !== "/" || e.ctrlKey || e.metaKey || typing) return;
      e.preventDefault();
      input.current?.focus();
      input.current?.select();
    };
    document.addEventListener("keydown", slash);
    return () => document.removeEventListener("keydown", slash);
  }, []);
  return (
    <div class="search">
      <input
        ref={input}
        type="search"
        spellcheck={false}
        placeholder="search  /"
        aria-label="search functions"
        title="text, /expression/, module:name"
        value={search}
        onInput={(e) => store.patch({ search: e.currentTarget.value })}
        onKeyDown={(e) => {
          if (e.key !== "Escape") return;
          store.patch({ search: "" });
          e.currentTarget.blur();
        }}
      />
      <output class={error ? "query-error" : "num faint"} data-found>
        {error ||
          (found &&
            `${format.whole(found.frames)} ${found.frames === 1 ? "frame matches" : "frames match"}, ${format.percent(found.value, total)}`)}
      </output>
    </div>
  );
}
