// SPDX-License-Identifier: Apache-2.0
// The whole state of the page, and how it is written into the address. What has its default is
// left out, so that links stay short; what is no value of its field is as if left out.

export interface State {
  view: "profile" | "captures" | "nodes";
  query: string; // label matchers, as the API takes them
  from: string;
  to: string;
  live: number; // seconds between refreshes; 0: none
  type: string; // sample type
  show: "both" | "flame" | "table";
  tree: "down" | "up" | "sandwich";
  fn: string; // the function looked at in a sandwich
  search: string;
  zoom: string; // see flame/zoom.ts
  sort: "self" | "total" | "name" | "change";
  reverse: boolean;
  diff: boolean;
  base_query: string; // "": as query
  base_from: string;
  base_to: string;
  capture: string; // id: the samples of that capture alone
  host: boolean; // the host's readings are open
  open: string; // the node or capture whose details are open
}

export const DEFAULTS: State = {
  view: "profile",
  query: "",
  from: "now-15m",
  to: "now",
  live: 0,
  type: "cpu",
  show: "both",
  tree: "down",
  fn: "",
  search: "",
  zoom: "",
  sort: "self",
  reverse: false,
  diff: false,
  base_query: "",
  base_from: "",
  base_to: "",
  capture: "",
  host: true,
  open: "",
};

const CHOICES: Partial<Record<keyof State, readonly string[]>> = {
  view: ["profile", "captures", "nodes"],
  show: ["both", "flame", "table"],
  tree: ["down", "up", "sandwich"],
  sort: ["self", "total", "name", "change"],
};

/** A refresh more often than this only costs. */
const SHORTEST_LIVE = 2;
const LONGEST_LIVE = 3600;

export function parseUrl(search: string): State {
  const params = new URLSearchParams(search);
  const state: Record<string, unknown> = { ...DEFAULTS };
  for (const key of Object.keys(DEFAULTS) as (keyof State)[]) {
    const text = params.get(key);
    if (text === null) continue;
    const choices = CHOICES[key];
    switch (typeof DEFAULTS[key]) {
      case "boolean":
        state[key] = text === "1";
        break;
      case "number":
        state[key] = refresh(text);
        break;
      default:
        if (!choices || choices.includes(text)) state[key] = text;
    }
  }
  return state as unknown as State;
}

function refresh(text: string): number {
  const seconds = Number(text);
  if (!Number.isFinite(seconds) || seconds <= 0) return 0;
  return Math.min(LONGEST_LIVE, Math.max(SHORTEST_LIVE, Math.round(seconds)));
}

export function formatUrl(state: State): string {
  const params = new URLSearchParams();
  for (const key of Object.keys(DEFAULTS) as (keyof State)[]) {
    const value = state[key];
    if (value === DEFAULTS[key]) continue;
    params.set(key, typeof value === "boolean" ? (value ? "1" : "0") : String(value));
  }
  const text = params.toString();
  return text === "" ? "" : `?${text}`;
}
