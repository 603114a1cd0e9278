// SPDX-License-Identifier: Apache-2.0
// The top table. Rows are of one height, and only those in sight are in the page.

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { moduleColour } from "../flame/colours";
import type { Matcher } from "../flame/search";
import * as format from "../format";
import { useDark } from "../parts/dark";
import { type Column, change, type Row, sortRows, type Totals } from "./rows";

const ROW = 22;
const AHEAD = 10; // rows kept ready above and below

export interface TopProps {
  rows: Row[];
  totals: Totals;
  unit: string;
  diff: boolean;
  match: Matcher | null;
  sort: Column;
  reverse: boolean;
  onSort(by: Column, reverse: boolean): void;
  onFunction(name: string): void;
  onSandwich(name: string): void;
}

export function TopTable(p: TopProps) {
  const { rows, totals, match, sort, reverse } = p;
  const sorted = useMemo(() => {
    const some = match ? rows.filter((r) => match(r.func)) : rows;
    return sortRows(some, sort, reverse, totals);
  }, [rows, match, sort, reverse, totals]);
  const column = useMemo(() => unitOf(rows, p.unit), [rows, p.unit]);
  const { box, first, last } = useWindow(sorted.length);
  const dark = useDark();

  return (
    <div class={p.diff ? "top diff" : "top"} role="table" aria-rowcount={sorted.length}>
      <Head {...p} />
      <div class="top-scroll" ref={box} tabIndex={-1}>
        <div class="top-rows" style={{ height: `${sorted.length * ROW}px` }}>
          {sorted.slice(first, last).map((row, i) => (
            <Line
              key={`${row.func.module}\0${row.func.name}\0${row.func.file}`}
              at={first + i}
              row={row}
              dark={dark}
              column={column}
              {...p}
            />
          ))}
        </div>
        {sorted.length === 0 && (
          <p class="faint pad">{match ? "No function matches the search." : "No functions."}</p>
        )}
      </div>
    </div>
  );
}

function Head({ diff, sort, reverse, onSort, rows, unit }: TopProps) {
  const { name } = unitOf(rows, unit);
  const column = (by: Column, label: string, title: string) => (
    <span
      role="columnheader"
      class={by === "name" ? "name" : "num"}
      aria-sort={sort !== by ? "none" : reverse ? "ascending" : "descending"}
    >
      <button
        type="button"
        class="link"
        title={title}
        data-sort={by}
        onClick={() => onSort(by, sort === by && !reverse)}
      >
        {label}
        {sort === by && (reverse ? " ▴" : " ▾")}
      </button>
    </span>
  );
  return (
    <div class="top-line top-head" role="row">
      {column("self", `self${name && ` ${name}`}`, "in the function itself")}
      {column("total", `total${name && ` ${name}`}`, "in the function and what it calls")}
      {diff && column("change", "change", "of the total's share, in percentage points")}
      {column("name", "function", "")}
    </div>
  );
}

function Line({
  row,
  at,
  dark,
  column,
  totals,
  diff,
  onFunction,
  onSandwich,
}: TopProps & { row: Row; at: number; dark: boolean; column: format.ColumnUnit }) {
  const { func } = row;
  const title = [func.name, func.module, func.file].filter(Boolean).join("\n");
  const grew = diff ? change(row, totals) : 0;
  return (
    <div
      class="top-line"
      role="row"
      aria-rowindex={at + 1}
      style={{ top: `${at * ROW}px` }}
      data-function={func.name}
    >
      <Amount part={row.self} all={totals.total} column={column} />
      <Amount part={row.total} all={totals.total} column={column} />
      {diff && (
        <span role="cell" class={grew > 0 ? "num more" : grew < 0 ? "num less" : "num"}>
          {format.points(grew)}
        </span>
      )}
      <span role="cell" class="name" title={title}>
        <i style={{ background: moduleColour(func.module, func.realm, dark) }} />
        <button type="button" class="link" onClick={() => onFunction(func.name)}>
          {func.name}
        </button>
        <span class="faint module">{func.module}</span>
        <button
          type="button"
          class="link act"
          title="callers & callees"
          aria-label={`callers and callees of ${func.name}`}
          onClick={() => onSandwich(func.name)}
        >
          ⇅
        </button>
      </span>
    </div>
  );
}

/** A value, its share, and the share as a bar behind both. */
function Amount({ part, all, column }: { part: number; all: number; column: format.ColumnUnit }) {
  const share = all > 0 ? Math.min(1, part / all) : 0;
  return (
    <span role="cell" class="num amount">
      <i style={{ width: `${100 * share}%` }} />
      <span>{column.write(part)}</span>
      <span class="share">{format.percent(part, all)}</span>
    </span>
  );
}

/** Self and total are written in one unit, so that they can be compared: what suits self. */
function unitOf(rows: Row[], unit: string): format.ColumnUnit {
  let [self, total] = [0, 0];
  for (const r of rows) {
    self = Math.max(self, r.self);
    total = Math.max(total, r.total);
  }
  return format.columnUnit(self || total, unit);
}

/** Which rows are in sight of the scrolling box. */
function useWindow(count: number) {
  const box = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState({ top: 0, height: 400 });
  useLayoutEffect(() => {
    const b = box.current;
    if (!b) return;
    const read = () => setAt({ top: b.scrollTop, height: b.clientHeight });
    const resized = new ResizeObserver(read);
    resized.observe(b);
    b.addEventListener("scroll", read, { passive: true });
    return () => {
      resized.disconnect();
      b.removeEventListener("scroll", read);
    };
  }, []);
  const first = Math.max(0, Math.floor(at.top / ROW) - AHEAD);
  const last = Math.min(count, Math.ceil((at.top + at.height) / ROW) + AHEAD);
  return { box, first, last };
}
