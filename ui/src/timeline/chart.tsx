// SPDX-License-Identifier: Apache-2.0
// A small chart by uPlot. Dragging over it chooses a range; the cursor is shared by all charts.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { clock, tidy } from "../format";
import { columnsOf, type Line, scaleTop } from "./lines";

const HEIGHT = 84;

export interface ChartProps {
  title: string;
  help: string;
  lines: Line[];
  stepMs: number;
  from: number; // Unix milliseconds
  to: number;
  stacked?: boolean;
  most?: number;
  binary?: boolean; // the scale goes in powers of 1024
  format(value: number): string;
  onRange(from: number, to: number): void;
  empty: string; // what stands where there is no line
  children?: ComponentChildren; // at the end of the caption
}

export function Chart(p: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [at, setAt] = useState<number | null>(null);
  const now = useRef(p);
  now.current = p;
  const columns = columnsOf(p.lines, p.stepMs, p.stacked === true);
  const data = [columns.times, ...columns.columns] as uPlot.AlignedData;
  const shape = `${p.lines.map((l) => l.label).join()}`;

  useLayoutEffect(() => {
    const el = box.current;
    if (!el || p.lines.length === 0) return;
    const make = () => {
      plot.current?.destroy();
      plot.current = new uPlot(options(now, el, setAt), data, el);
      setScales(plot.current, now.current, data);
    };
    make();
    const resized = new ResizeObserver(() =>
      plot.current?.setSize({ width: el.clientWidth, height: HEIGHT }),
    );
    resized.observe(el);
    // Colours are read off the style sheet when a chart is made.
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", make);
    return () => {
      resized.disconnect();
      dark.removeEventListener("change", make);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [shape, p.stacked]);

  useEffect(() => {
    if (plot.current) setScales(plot.current, p, data);
  });

  return (
    <figure class="chart" data-chart={p.title}>
      <figcaption>
        <b title={p.help}>{p.title}</b>
        <Legend lines={p.lines} values={columns.values} at={at} format={p.format} />
        <span class="stretch" />
        {at !== null && at < columns.times.length && (
          <span class="at faint num">{clock(columns.times[at] * 1000)}</span>
        )}
        {p.children}
      </figcaption>
      {p.lines.length === 0 ? <p class="faint empty">{p.empty}</p> : <div class="plot" ref={box} />}
    </figure>
  );
}

/** The lines' names with their values under the cursor, or the newest. */
function Legend({
  lines,
  values,
  at,
  format,
}: {
  lines: Line[];
  values: (number | null)[][];
  at: number | null;
  format(v: number): string;
}) {
  return (
    <span class="legend">
      {lines.map((l, i) => {
        const v = at === null ? values[i].findLast((x) => x !== null) : values[i][at];
        return (
          <span key={l.label}>
            <i style={{ background: `var(${l.colour})` }} />
            {l.label} <span class="num">{v === null || v === undefined ? "–" : format(v)}</span>
          </span>
        );
      })}
    </span>
  );
}

function setScales(plot: uPlot, p: ChartProps, data: uPlot.AlignedData): void {
  plot.batch(() => {
    plot.setData(data, false);
    let most = p.most ?? 0;
    if (p.most === undefined) {
      for (const column of data.slice(1)) for (const v of column) most = Math.max(most, v ?? 0);
    }
    plot.setScale("x", { min: p.from / 1000, max: p.to / 1000 });
    plot.setScale("y", { min: 0, max: scaleTop(most, p.binary) });
  });
}

function options(
  now: { current: ChartProps },
  el: HTMLElement,
  cursorAt: (index: number | null) => void,
): uPlot.Options {
  const style = getComputedStyle(document.documentElement);
  const css = (name: string) => style.getPropertyValue(name).trim();
  const axis = {
    stroke: css("--faint"),
    font: "11px system-ui, sans-serif",
    grid: { stroke: css("--grid"), width: 1 },
    ticks: { show: false },
  };
  const p = now.current;
  return {
    width: el.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    padding: [7, 14, 0, 0],
    cursor: {
      sync: { key: "timeline", setSeries: false },
      drag: { x: true, y: false, setScale: false },
      points: { show: p.stacked !== true },
      y: false,
    },
    scales: { x: { time: true, auto: false }, y: { auto: false } },
    axes: [
      { ...axis, size: 20, space: 64, values: (_, ticks) => ticks.map((t) => tick(t, ticks)) },
      {
        ...axis,
        size: 62,
        gap: 4,
        splits: (_, __, min, max) => [min, (min + max) / 2, max],
        values: (_, ticks) => ticks.map((v) => (v === 0 ? "0" : tidy(now.current.format(v)))),
      },
    ],
    series: [
      {},
      ...p.lines.map((l) => ({
        label: l.label,
        // Areas have no outline: that of one without height would hide those below it.
        stroke: p.stacked ? "transparent" : css(l.colour),
        width: 1.25,
        // A line needs two points: fewer are drawn as dots.
        points: {
          show: (u: uPlot, i: number) =>
            (u.data[i] as unknown[]).filter((v) => v != null).length < 3,
          size: 4,
        },
        ...(p.stacked ? { fill: `color-mix(in oklab, ${css(l.colour)} 72%, transparent)` } : {}),
      })),
    ],
    bands: p.stacked
      ? p.lines.slice(1).map((_, i) => ({ series: [i + 2, i + 1] as [number, number] }))
      : [],
    hooks: {
      setCursor: [(u) => cursorAt(u.cursor.idx ?? null)],
      setSelect: [
        (u) => {
          if (u.select.width < 3) return;
          const from = u.posToVal(u.select.left, "x") * 1000;
          const to = u.posToVal(u.select.left + u.select.width, "x") * 1000;
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          now.current.onRange(from, to);
        },
      ],
    },
  };
}

/** Hours and minutes, seconds where ticks are close, the date where they are far apart. */
function tick(seconds: number, all: number[]): string {
  const at = new Date(seconds * 1000);
  const step = all.length > 1 ? all[1] - all[0] : 60;
  const two = (n: number) => n.toString().padStart(2, "0");
  if (step >= 86400) return `${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  const time = `${two(at.getHours())}:${two(at.getMinutes())}`;
  return step < 60 ? `${time}:${two(at.getSeconds())}` : time;
}
