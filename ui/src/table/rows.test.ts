// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { at, treeOf } from "../flame/testing";
import { change, isWhole, rowsOf, rowsOfTop, selfByModule, sortRows, totalOf } from "./rows";

const show = (rows: ReturnType<typeof rowsOf>) =>
  rows.map((r) => `${r.func.name} ${r.self} ${r.total}`);

describe("rows", () => {
  it("count a function that calls itself once a stack", () => {
    expect(show(rowsOf(treeOf("f;f;f 3\nf;g;f 1\ng 5")))).toEqual(["f 4 4", "g 5 6"]);
  });
  it("of a part of the tree are of that part alone", () => {
    const tree = treeOf("a;x 1\nb;x 2\nb 4");
    expect(show(rowsOf(tree, at(tree, "b")))).toEqual(["x 2 2", "b 4 6"]);
  });
  it("leave out frames that were put together", () => {
    expect(show(rowsOf(treeOf("a;… 5\na 1")))).toEqual(["a 1 6"]);
  });
  it("of a part of the tree are exact where nothing in it was put together", () => {
    const tree = treeOf("a;… 5\nb;x 2");
    expect(["a", "b"].map((name) => isWhole(tree, at(tree, name)))).toEqual([false, true]);
    expect(isWhole(tree)).toBe(false);
  });
  it("add up by module, also what a cut graph has put together", () => {
    const row = (name: string, module: string, self: number) => ({
      ...{ name, module, file: "", realm: "user", self, total: 9 },
    });
    const rows = rowsOfTop({
      ...{ type: "cpu", unit: "nanoseconds", total: 9 },
      rows: [row("f", "libc", 3), row("g", "prog", 4), row("h", "libc", 2), row("i", "idle", 0)],
    });
    expect(selfByModule(rows)).toEqual([
      { module: "libc", realm: "user", self: 5 },
      { module: "prog", realm: "user", self: 4 },
    ]);
  });
  it("tell a function's total by its name alone where one has it", () => {
    const rows = rowsOf(treeOf("f/one;f/two 1\ng 2"));
    expect(["g", "f", "none"].map((name) => totalOf(rows, name))).toEqual([2, null, null]);
  });
  it("of a diff tell both sides, and sort by how much changed", () => {
    const tree = treeOf("a 7\nb 3", "a 5\nb 4\nc 1");
    const rows = rowsOf(tree);
    const sorted = sortRows(rows, "change", false, tree);
    expect(sorted.map((r) => [r.func.name, Math.round(100 * change(r, tree))])).toEqual([
      ["a", 20],
      ["b", -10],
      ["c", -10],
    ]);
  });
  it("sort by name, and either way", () => {
    const tree = treeOf("b 2\na 1");
    const names = (reverse: boolean) =>
      sortRows(rowsOf(tree), "name", reverse, tree).map((r) => r.func.name);
    expect(names(false)).toEqual(["a", "b"]);
    expect(names(true)).toEqual(["b", "a"]);
  });
});
