// SPDX-License-Identifier: Apache-2.0
// What the hosts were doing while the samples were taken: above the flame graph, on the same range.

import { useMemo } from "preact/hooks";
import type { Series } from "../api/answers";
import * as api from "../api/client";
import * as format from "../format";
import { Failure } from "../parts/notice";
import { nodesOnly } from "../query/matchers";
import { useLoad } from "../state/load";
import { useStore } from "../state/store";
import { ends, formatTime } from "../state/time";
import { Chart } from "./chart";
import { type Line, stepSeconds, together } from "./lines";
import { linesOf, METRICS, PANELS } from "./panels";

/** More nodes than this are drawn as one line. */
const MOST_NODES = 5;
/** Dragging over less than this is a slip of the hand. */
const SHORTEST_MS = 1000;

interface Answers {
  from: number;
  to: number;
  rates: Series[];
  readings: Map<string, Series[]>;
  cut: boolean; // there were more series than the server answers at once
}

interface TimelineProps {
  unit: string;
  told: string; // the error that the page tells already: it is not told again
}

export function Timeline({ unit, told }: TimelineProps) {
  const store = useStore();
  const { query, from, to, type, host } = store.state.value;
  const selection = { query, from, to };
  const subject = JSON.stringify([selection, type, host]);
  const loaded = useLoad(
    (signal) => load(type, selection, host, signal),
    subject,
    store.tick.value,
  );
  const answers = loaded.last;

  const onRange = (a: number, b: number) => {
    if (b - a < SHORTEST_MS) return;
    store.patch({ from: formatTime(a), to: formatTime(b), live: 0, zoom: "" });
  };
  const around = ends(selection, Date.now());
  const range = answers ?? around;
  const stepMs = 1000 * stepSeconds((range.to - range.from) / 1000);
  const common = { stepMs, from: range.from, to: range.to, onRange };
  // Nothing is known of a range before its answer is there, nor when there is none.
  const unknown = loaded.error ? "no answer" : loaded.loading ? "…" : "";

  return (
    <section
      class={loaded.data || loaded.error ? "timeline" : "timeline stale"}
      aria-label="timeline"
    >
      <Chart
        {...common}
        title={`${type} rate`}
        help="The chosen sample type per second. Drag over a chart to choose a range."
        lines={useMemo(() => rateLines(answers?.rates ?? [], unit), [answers, unit])}
        format={(v) => rate(v, unit, type)}
        empty={unknown || `no ${type} samples in this range`}
      >
        <button
          type="button"
          class="link faint"
          aria-expanded={host}
          onClick={() => store.patch({ host: !host })}
        >
          {host ? "hide host" : "show host"}
        </button>
      </Chart>
      {host &&
        PANELS.map((panel) => (
          <Chart
            key={panel.id}
            {...common}
            title={panel.title}
            help={panel.help}
            lines={linesOf(panel, answers?.readings ?? new Map())}
            stacked={panel.stacked}
            most={panel.most}
            binary={panel.binary}
            format={panel.format}
            empty={unknown || "no readings in this range"}
          />
        ))}
      {answers?.cut && (
        <p class="faint">Not all nodes are in these lines: pick fewer to see all of them.</p>
      )}
      {loaded.error && loaded.error.message !== told && (
        <Failure error={loaded.error} retry={loaded.reload} />
      )}
    </section>
  );
}

async function load(
  type: string,
  selection: api.Selection,
  host: boolean,
  signal: AbortSignal,
): Promise<Answers> {
  const { from, to } = ends(selection, Date.now());
  const step = `${stepSeconds((to - from) / 1000)}s`;
  // Readings have no labels but the node's: the query's other matchers would leave none.
  const onNodes = { ...selection, query: nodesOnly(selection.query) };
  const [rates, ...readings] = await Promise.all([
    api.series(type, selection, step, signal),
    ...(host ? METRICS : []).map((metric) => api.series(metric, onNodes, step, signal)),
  ]);
  return {
    from,
    to,
    rates: rates.series,
    readings: new Map(readings.map((r, i) => [METRICS[i], r.series])),
    cut: rates.cut || readings.some((r) => r.cut),
  };
}

function rateLines(series: Series[], unit: string): Line[] {
  const scale = unit === "nanoseconds" ? 1e-9 : unit === "millijoules" ? 1e-3 : 1;
  const scaled = series.map((s) => ({ ...s, values: s.values.map((v) => v * scale) }));
  if (series.length > MOST_NODES) {
    const label = `${series.length} nodes`;
    return [{ label, colour: "--line-1", points: together(scaled, "sum") }];
  }
  return scaled.map((s, i) => ({
    label: s.labels.node ?? "all",
    colour: `--line-${i + 1}`,
    points: together([s], "sum"),
  }));
}

function rate(v: number, unit: string, type: string): string {
  if (unit === "nanoseconds") return `${format.digits(v)} ${format.parallel(type)}`;
  if (unit === "millijoules") return `${format.digits(v)} W`;
  return `${format.count(v)}/s`;
}
