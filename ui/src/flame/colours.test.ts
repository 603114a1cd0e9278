// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { diffStep, functionColours, LIGHT, moduleColour } from "./colours";
import { oklch } from "./oklch";
import { at, treeOf } from "./testing";

/** The hue of #rrggbb, from 0 to 360. */
function hue(colour: string): number {
  const [r, g, b] = [1, 3, 5].map((i) => Number.parseInt(colour.slice(i, i + 2), 16));
  const most = Math.max(r, g, b);
  const chroma = most - Math.min(r, g, b);
  const sector =
    most === r ? (g - b) / chroma : most === g ? 2 + (b - r) / chroma : 4 + (r - g) / chroma;
  return (60 * sector + 360) % 360;
}

describe("colours", () => {
  it("are the same for a module wherever it is met", () => {
    expect(moduleColour("libc.so.6", "user", false)).toBe(moduleColour("libc.so.6", "user", false));
  });
  it("keep the kernel's blue to the kernel", () => {
    for (let i = 0; i < 500; i++) {
      const user = hue(moduleColour(`module-${i}`, "user", false));
      const kernel = hue(moduleColour(`module-${i}`, "kernel", false));
      expect(kernel).toBeGreaterThan(190);
      expect(kernel).toBeLessThan(250);
      expect(user > 180 && user < 260).toBe(false);
    }
  });
  it("tell a module's functions apart", () => {
    const colours = functionColours(treeOf("work;burn;idle;main 1").functions, LIGHT);
    expect(new Set(colours).size).toBe(4);
  });
  it("of a diff go from gone to new", () => {
    const tree = treeOf("new 5\nsame 5", "gone 5\nsame 5");
    expect(diffStep(tree, at(tree, "gone"))).toBe(0);
    expect(diffStep(tree, at(tree, "same"))).toBe(24);
    expect(diffStep(tree, at(tree, "new"))).toBe(48);
  });
  it.each([
    ["base", treeOf("f 5", "")],
    ["own side", treeOf("", "f 5")],
  ])("of a diff tell nothing where its %s has no samples", (_, tree) =>
    expect(diffStep(tree, at(tree, "f"))).toBe(24),
  );
});

describe("oklch", () => {
  it.each([
    [0, 0, 0, "#000000"],
    [1, 0, 0, "#ffffff"],
    [0.627955, 0.257683, 29.2339, "#ff0000"],
    [0.452014, 0.313214, 264.052, "#0000ff"],
    [0.8664, 0.294827, 142.4953, "#00ff00"],
  ])("%d %d %d is %s", (l, c, h, want) => expect(oklch(l, c, h)).toBe(want));
});
