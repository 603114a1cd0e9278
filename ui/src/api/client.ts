// SPDX-License-Identifier: Apache-2.0
// The calls of docs/http-api.md. Each takes an AbortSignal, has a deadline, and answers with
// checked values or throws an Error whose message can be shown as it is.

import * as answers from "./answers";
import * as profile from "./profile";

/** The server said no: the message is its own. */
export class ApiError extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.name = "ApiError";
    this.status = status;
  }
}

/** No answer: the server is not there, or something between does not let us through. */
export class UnreachableError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "UnreachableError";
  }
}

/** What a question is about. */
export interface Selection {
  query: string;
  from: string;
  to: string;
  capture?: string;
}

export interface CaptureOrder {
  nodes: string[];
  pids: number[];
  duration: string;
  hz: number;
}

type Params = Record<string, string | number | undefined>;

/** Longer than the server allows itself for the heaviest question. */
const DEADLINE_MS = 60_000;

/** The page may live below a path, so the address is relative to it. */
export function address(path: string, params: Params = {}): string {
  const search = new URLSearchParams();
  for (const [k, v] of Object.entries(params)) {
    if (v !== undefined && v !== "") search.set(k, String(v));
  }
  const tail = search.toString();
  return `api/v1/${path}${tail ? `?${tail}` : ""}`;
}

/** How often a server that is busy is asked. */
const TRIES = 4;
const LONGEST_WAIT_S = 10;

async function call(path: string, init: RequestInit, signal?: AbortSignal): Promise<unknown> {
  const deadline = AbortSignal.timeout(DEADLINE_MS);
  const either = signal ? AbortSignal.any([signal, deadline]) : deadline;
  let response: Response;
  let body: string;
  try {
    response = await fetch(path, { ...init, signal: either });
    for (let tries = 1; tries < TRIES && isBusy(response); tries++) {
      await comeAgain(response, either);
      response = await fetch(path, { ...init, signal: either });
    }
    body = await response.text();
  } catch (e) {
    if (signal?.aborted) throw e;
    if (deadline.aborted) {
      throw new UnreachableError(`no answer within ${DEADLINE_MS / 1000} s from ${path}`);
    }
    throw new UnreachableError(e instanceof Error ? e.message : String(e));
  }
  if (!response.ok) throw refusal(response, body);
  try {
    return JSON.parse(body);
  } catch {
    throw new ApiError(response.status, `the answer to ${path} is not JSON: ${excerpt(body)}`);
  }
}

/** The server is there and asks to be asked later. */
function isBusy(response: Response): boolean {
  return [429, 503].includes(response.status) && response.headers.has("Retry-After");
}

/** Waits as long as the server said, and a little longer by chance: others were told the same. */
async function comeAgain(response: Response, signal: AbortSignal): Promise<void> {
  const seconds = Number(response.headers.get("Retry-After")) || 1;
  const ms = 1000 * Math.min(LONGEST_WAIT_S, seconds) * (1 + Math.random());
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

/** What the server's refusal says, or when it is not in the API's words, the beginning of it. */
function refusal(response: Response, body: string): Error {
  // A proxy says with these that there is no server behind it.
  const away = [502, 503, 504].includes(response.status);
  try {
    const message = JSON.parse(body)?.error;
    if (typeof message === "string" && message !== "") {
      return new ApiError(response.status, message);
    }
  } catch {
    // Not JSON: told below.
  }
  const status = `HTTP ${response.status} ${response.statusText}`.trim();
  const message = `${status} ${excerpt(body)}`.trim();
  return away ? new UnreachableError(message) : new ApiError(response.status, message);
}

function excerpt(body: string): string {
  const text = body
    .replace(/<[^>]*>/g, " ")
    .replace(/\s+/g, " ")
    .trim();
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

const get = (path: string, params: Params, signal?: AbortSignal) =>
  call(address(path, params), {}, signal);

export async function nodes(signal?: AbortSignal): Promise<answers.Node[]> {
  return answers.nodes(await get("nodes", {}, signal));
}

export async function types(s: Selection, signal?: AbortSignal): Promise<answers.SampleType[]> {
  return answers.types(await get("types", { ...s }, signal));
}

export async function labels(s: Selection, signal?: AbortSignal): Promise<string[]> {
  return answers.labels(await get("labels", { ...s }, signal));
}

export async function labelValues(name: string, s: Selection, signal?: AbortSignal) {
  const path = `labels/${encodeURIComponent(name)}/values`;
  return answers.values(await get(path, { ...s, limit: 1000 }, signal));
}

export async function flamegraph(
  type: string,
  s: Selection,
  maxNodes: number,
  signal?: AbortSignal,
): Promise<profile.Flamegraph> {
  const params = { type, ...s, format: "flamegraph", max_nodes: maxNodes };
  return profile.flamegraph(await get("profiles", params, signal));
}

export async function top(type: string, s: Selection, signal?: AbortSignal): Promise<profile.Top> {
  return profile.top(await get("profiles", { type, ...s, format: "top" }, signal));
}

export async function diff(
  type: string,
  s: Selection,
  base: Selection,
  maxNodes: number,
  signal?: AbortSignal,
): Promise<profile.Flamegraph> {
  const params = {
    type,
    ...s,
    base_query: base.query,
    base_from: base.from,
    base_to: base.to,
    format: "flamegraph",
    max_nodes: maxNodes,
  };
  return profile.flamegraph(await get("diff", params, signal));
}

export async function series(
  metric: string,
  s: Selection,
  step: string,
  signal?: AbortSignal,
): Promise<{ series: answers.Series[]; cut: boolean }> {
  return answers.series(await get("series", { metric, ...s, step }, signal));
}

export async function captures(signal?: AbortSignal): Promise<answers.Capture[]> {
  return answers.captures(await get("captures", { limit: 100 }, signal));
}

export async function capture(id: string, signal?: AbortSignal): Promise<answers.Capture> {
  return answers.capture(await get(`captures/${encodeURIComponent(id)}`, {}, signal));
}

export async function startCapture(order: CaptureOrder): Promise<answers.Capture> {
  const targets =
    order.pids.length > 0 ? { nodes: order.nodes, pids: order.pids } : { nodes: order.nodes };
  const body = { kind: "cpu", targets, duration: order.duration, hz: order.hz };
  const init = {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  };
  return answers.capture(await call(address("captures"), init));
}

export async function cancelCapture(id: string): Promise<answers.Capture> {
  return answers.capture(
    await call(address(`captures/${encodeURIComponent(id)}`), { method: "DELETE" }),
  );
}

export function artifactAddress(id: string, name: string): string {
  return address(`captures/${encodeURIComponent(id)}/artifacts/${encodeURIComponent(name)}`);
}

/** Where a profile can be fetched in another format: for links. */
export function exportAddress(type: string, s: Selection, format: string): string {
  return address("profiles", { type, ...s, format });
}
