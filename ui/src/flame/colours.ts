// SPDX-License-Identifier: Apache-2.0
// A frame's colour says where its code comes from, and is the same on every page and day: modules
// of processes have warm hues by the hash of their name, the kernel is blue, what is no code grey.
// Lightness is the same for all, so that text reads equally well on each.

import type { Func } from "../api/profile";
import { hash } from "./hash";
import { oklch } from "./oklch";
import { ROOT, type Tree } from "./tree";

export interface Theme {
  dark: boolean;
  text: string;
  faint: string; // text on frames that a search leaves aside
  background: string;
  root: string;
  small: string;
  smallLine: string;
  outline: string;
  match: string;
}

export const LIGHT: Theme = {
  dark: false,
  text: "#1a1c1f",
  faint: "#7d838b",
  background: "#ffffff",
  root: "#e6e9ec",
  small: "#eceef0",
  smallLine: "#c4c9cf",
  outline: "#111827",
  match: oklch(0.62, 0.19, 300),
};

export const DARK: Theme = {
  dark: true,
  text: "#eceef1",
  faint: "#7b828c",
  background: "#14171b",
  root: "#2a2f36",
  small: "#20242a",
  smallLine: "#3d444d",
  outline: "#f3f4f6",
  match: oklch(0.72, 0.17, 305),
};

/** Hues of user code run from magenta over red and yellow to green; blue is the kernel's. */
const WARM_FROM = -20;
const WARM_ARC = 175;

function unit(h: number): number {
  return h / 2 ** 32;
}

/** The colour of a module in a realm; shade, from 0 to 1, tells its functions apart. */
export function moduleColour(module: string, realm: string, dark: boolean, shade = 0.5): string {
  const own = hash(module);
  const h = unit(own);
  // Few hues can be told apart: modules differ in lightness and strength too.
  const step = (own % 3) - 1;
  const light = (dark ? 0.43 : 0.83) + 0.035 * step + (shade - 0.5) * 0.05;
  if (realm === "kernel") return oklch(light, dark ? 0.06 : 0.062, 238 + 24 * h);
  if (realm === "synthetic") return oklch(light, 0.008, 260);
  const strength = ((own >>> 4) % 2 === 0 ? 0.075 : 0.115) * (dark ? 0.85 : 1);
  return oklch(light, strength, WARM_FROM + WARM_ARC * h);
}

/** The colours of all functions, in their order. */
export function functionColours(functions: Func[], theme: Theme): string[] {
  return functions.map((f) => moduleColour(f.module, f.realm, theme.dark, unit(hash(f.name))));
}

/** Steps from "gone" over "the same" to "new". */
const STEPS = 24;

/** The colours of a diff, from less (blue) to more (red). */
export function diffColours(theme: Theme): string[] {
  const [light, deep] = theme.dark ? [0.34, 0.5] : [0.92, 0.7];
  return Array.from({ length: 2 * STEPS + 1 }, (_, i) => {
    const x = (i - STEPS) / STEPS;
    const strength = Math.abs(x);
    return oklch(light + (deep - light) * strength, 0.15 * strength, x > 0 ? 25 : 250);
  });
}

/**
 * Which of diffColours a frame has: its share's change, measured by the greater of the two. Where
 * a side has no samples there are no shares to tell apart, and no frame is of more or less.
 */
export function diffStep(tree: Tree, i: number): number {
  if (!tree.baseValue || tree.total === 0 || tree.baseTotal === 0) return STEPS;
  const now = tree.value[i] / tree.total;
  const base = tree.baseValue[i] / tree.baseTotal;
  const most = Math.max(now, base);
  return STEPS + Math.round(most > 0 ? (STEPS * (now - base)) / most : 0);
}

/** Answers the colour of each frame. */
export function painter(tree: Tree, theme: Theme): (node: number) => string {
  if (tree.baseValue) {
    const colours = diffColours(theme);
    return (i) => (tree.fn[i] === ROOT ? theme.root : colours[diffStep(tree, i)]);
  }
  const colours = functionColours(tree.functions, theme);
  return (i) => (tree.fn[i] === ROOT ? theme.root : colours[tree.fn[i]]);
}
