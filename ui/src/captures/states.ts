// SPDX-License-Identifier: Apache-2.0
// The states of a capture and of its targets, as the page shows them.

import type { Capture } from "../api/answers";

export type Tone = "good" | "bad" | "busy" | "quiet";

const TONES: Record<string, Tone> = {
  PENDING: "busy",
  RUNNING: "busy",
  SUCCEEDED: "good",
  PARTIAL: "bad",
  EMPTY: "quiet",
  REFUSED: "bad",
  BUSY: "bad",
  NO_SERVER: "bad",
  FAILED: "bad",
  EXPIRED: "bad",
  CANCELLED: "quiet",
};

export function tone(state: string): Tone {
  return TONES[state] ?? "quiet";
}

export function underWay(c: Capture): boolean {
  return tone(c.state) === "busy";
}

/** Whether there are samples to draw. */
export function hasProfile(c: Capture): boolean {
  return c.targets.some((t) => t.state === "SUCCEEDED");
}
