// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { at, show, treeOf } from "./testing";
import { callees, callers, functionsNamed, invert } from "./transform";
import { pathTo } from "./tree";

describe("a tree", () => {
  it("has one root above all, and the heaviest of siblings first", () => {
    const tree = treeOf("light 1\nheavy;a 3\nheavy;b 4\nheavy 2");
    expect(show(tree)).toBe(
      "all 10 0\n heavy 9 2\n  b 4 4\n  a 3 3\n light 1 1".replaceAll("\t", " "),
    );
    expect(tree.depths).toBe(3);
  });

  it("puts small frames last, however heavy, and counts them as their own", () => {
    expect(show(treeOf("m;… 9\nm;a 1"))).toBe("all 10 0\n m 10 0\n  a 1 1\n  small frames 9 9");
  });

  it("lays children side by side inside their parent", () => {
    const tree = treeOf("a;x 1\na;y 2\nb 1");
    for (let i = 1; i < tree.size; i++) {
      const p = tree.parent[i];
      expect(tree.start[i]).toBeGreaterThanOrEqual(tree.start[p]);
      expect(tree.start[i] + tree.width[i]).toBeLessThanOrEqual(tree.start[p] + tree.width[p]);
    }
    expect(tree.start[at(tree, "a", "x")]).toBe(0.5);
    expect(tree.width[at(tree, "a", "x")]).toBe(0.25);
  });

  it("gives a path the same key whatever else the answer holds", () => {
    const one = treeOf("main;work;hot 5");
    const two = treeOf("other 9\nmain;idle 1\nmain;work;cold 7\nmain;work;hot 1");
    expect(one.key[at(one, "main", "work", "hot")]).toBe(two.key[at(two, "main", "work", "hot")]);
    expect(new Set(two.key).size).toBe(two.size);
  });

  it("knows the way to a node", () => {
    const tree = treeOf("a;b;c 1");
    expect(pathTo(tree, 3)).toEqual([0, 1, 2, 3]);
  });

  it("stands an answer without frames", () => {
    const tree = treeOf("");
    expect(show(tree)).toBe("all 0 0");
  });

  it("is as wide in a diff as the mean of both shares, so that what is gone is seen", () => {
    const tree = treeOf("kept 1", "kept 50\ngone 50");
    expect(tree.width[at(tree, "gone")]).toBe(0.25);
    expect(tree.width[at(tree, "kept")]).toBe(0.75);
    expect(tree.width[0]).toBe(1);
  });

  it("shows a diff of which one side is empty at full width", () => {
    const graph = treeOf("a 0", "a 5");
    expect(graph.width[at(graph, "a")]).toBe(1);
  });
});

describe("turning over", () => {
  it("begins at what runs and adds up by who called it", () => {
    expect(show(invert(treeOf("a;b;x 1\nc;b;x 2\na 4")))).toBe(
      "all 7 0\n a 4 4\n x 3 0\n  b 3 0\n   c 2 2\n   a 1 1",
    );
  });

  it("keeps both sides of a diff", () => {
    expect(show(invert(treeOf("a;x 1", "a;x 3")))).toBe(
      "all 1 0 was 3\n x 1 0 was 3\n  a 1 1 was 3",
    );
  });
});

describe("one function's", () => {
  const tree = treeOf("a;f;x 1\nb;f;y 2\nb;f;f;x 4\nb 8");
  const f = functionsNamed(tree, "f");

  it("callers are added up outwards", () => {
    expect(show(callers(tree, f))).toBe("all 7 0\n f 7 0\n  b 6 6\n  a 1 1");
  });

  it("callees are added up over all callers, recursion counted once", () => {
    expect(show(callees(tree, f))).toBe("all 7 0\n f 7 0\n  f 4 0\n   x 4 4\n  y 2 2\n  x 1 1");
  });

  it("views are empty when it is nowhere", () => {
    expect(callers(tree, functionsNamed(tree, "nope")).total).toBe(0);
  });
});
