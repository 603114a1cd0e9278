// SPDX-License-Identifier: Apache-2.0
// Searching by name. A search is over functions, of which there are far fewer than frames.

import type { Func } from "../api/profile";
import type { Tree } from "./tree";

export type Matcher = (f: Func) => boolean;

/**
 * Understands what was typed: text is looked for as it is, in any case; /…/ is a regular
 * expression; "module:" before either asks for the module. Empty asks for nothing: null.
 */
export function parseSearch(text: string): { match: Matcher | null; error: string } {
  const byModule = /^(?:module|mod):/.exec(text);
  const wanted = byModule ? text.slice(byModule[0].length).trim() : text.trim();
  if (wanted === "") return { match: null, error: "" };
  const subject = byModule ? (f: Func) => f.module : (f: Func) => f.name;

  const re = /^\/(.+)\/$/.exec(wanted);
  if (!re) {
    const needle = wanted.toLowerCase();
    return { match: (f) => subject(f).toLowerCase().includes(needle), error: "" };
  }
  try {
    const expression = new RegExp(re[1], "i");
    return { match: (f) => expression.test(subject(f)), error: "" };
  } catch (e) {
    return { match: null, error: e instanceof Error ? e.message : String(e) };
  }
}

/** Marks the functions that match. */
export function mark(functions: Func[], match: Matcher): Uint8Array {
  return Uint8Array.from(functions, (f) => Number(match(f)));
}

export interface Found {
  marked: Uint8Array; // by function
  frames: number;
  value: number; // what the stacks with a match in them add up to
}

/** Looks for a match in a tree. */
export function find(tree: Tree, match: Matcher): Found {
  const marked = mark(tree.functions, match);
  let frames = 0;
  let value = 0;
  let inside = 0; // end of the outermost match that is open
  for (let i = 1; i < tree.size; i++) {
    if (tree.fn[i] < 0 || marked[tree.fn[i]] === 0) continue;
    frames++;
    if (i < inside) continue;
    value += tree.value[i];
    inside = tree.end[i];
  }
  return { marked, frames, value };
}
