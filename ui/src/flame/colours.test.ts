// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { diffStep, functionColours, LIGHT, moduleColour } from "./colours";
import { at, treeOf } from "./testing";

const hue = (colour: string) => ((Number(colour.match(/([-\d.]+)\)$/)?.[1]) % 360) + 360) % 360;

describe("colours", () => {
  it("are the same for a module wherever it is met", () => {
    expect(moduleColour("libc.so.6", "user", false)).toBe(moduleColour("libc.so.6", "user", false));
  });
  it("keep the kernel's blue to the kernel", () => {
    for (let i = 0; i < 500; i++) {
      const user = hue(moduleColour(`module-${i}`, "user", false));
      const kernel = hue(moduleColour(`module-${i}`, "kernel", false));
      expect(kernel).toBeGreaterThan(230);
      expect(kernel).toBeLessThan(265);
      expect(user > 230 && user < 265).toBe(false);
    }
  });
  it("tell a module's functions apart", () => {
    const colours = functionColours(treeOf("a;b;c;d 1").functions, LIGHT);
    expect(new Set(colours).size).toBe(4);
  });
  it("of a diff go from gone to new", () => {
    const tree = treeOf("new 5\nsame 5", "gone 5\nsame 5");
    expect(diffStep(tree, at(tree, "gone"))).toBe(0);
    expect(diffStep(tree, at(tree, "same"))).toBe(24);
    expect(diffStep(tree, at(tree, "new"))).toBe(48);
  });
});
