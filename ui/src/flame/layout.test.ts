// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { step } from "./interact";
import { Labels, shorten } from "./labels";
import { Boxes, boxAt, clamp, framesIn, layout, WHOLE } from "./layout";
import { at, treeOf } from "./testing";
import { nameOf, type Tree } from "./tree";
import { placeOf, zoomToBlock, zoomToNode, zoomToView } from "./zoom";

/** What is seen, as "name x+width"; a block as "first..last". */
function seen(
  tree: Tree,
  pixels: number,
  view = WHOLE,
  rows: [number, number] = [0, 99],
): string[] {
  const boxes = new Boxes();
  layout(tree, view, pixels, rows[0], rows[1], boxes);
  return Array.from({ length: boxes.count }, (_, b) => {
    const last = boxes.last[b];
    const name = nameOf(tree, boxes.node[b]) + (last >= 0 ? `..${nameOf(tree, last)}` : "");
    return `${name} ${+boxes.x[b].toFixed(2)}+${+boxes.width[b].toFixed(2)}`;
  });
}

describe("layout", () => {
  it("draws every frame that is wide enough, in its place", () => {
    expect(seen(treeOf("a;x 1\na 1\nb 2"), 100)).toEqual([
      "all 0+100",
      "a 0+50",
      "x 0+25",
      "b 50+50",
    ]);
  });

  it("puts narrow siblings together into one block, with all above them", () => {
    const tree = treeOf("big 997\np;deep;deeper 1\nq 1\nr 1");
    expect(seen(tree, 100)).toEqual(["all 0+100", "big 0+99.7", "p..r 99.7+1"]);
    expect(framesIn(tree, at(tree, "p"), at(tree, "r"))).toBe(5);
  });

  it("does not join narrow frames of different parents", () => {
    const tree = treeOf("a;x 1\na 499\nb;y 1\nb 499");
    expect(seen(tree, 100)).toEqual(["all 0+100", "a 0+50", "x..x 0+1", "b 50+50", "y..y 50+1"]);
  });

  it("shows a block's frames once it is zoomed to", () => {
    const tree = treeOf("big 997\np 1\nq 1\nr 1");
    const view = placeOf(tree, zoomToBlock(tree, at(tree, "p"), at(tree, "r")));
    expect(seen(tree, 90, view)).toEqual(["all -29910+30000", "p 0+30", "q 30+30", "r 60+30"]);
  });

  it("visits nothing that is outside the view or the rows", () => {
    const tree = treeOf("a;x;deep 1\nb;y 1\nc;z 2");
    const view = { x0: 0.5, x1: 0.75 };
    expect(seen(tree, 100, view, [1, 1])).toEqual(["a 0+100"]);
  });

  it("loses no value: boxes, blocks and selfs of each row add up to the whole", () => {
    const lines = Array.from(
      { length: 500 },
      (_, i) => `m${i % 7};f${i % 41};g${i} ${1 + ((i * 37) % 900)}`,
    );
    const boxes = new Boxes();
    const tree = treeOf(lines.join("\n"));
    layout(tree, WHOLE, 300, 1, 1, boxes);
    let sum = 0;
    for (let b = 0; b < boxes.count; b++) {
      for (let i = boxes.node[b]; ; i = tree.end[i]) {
        sum += tree.value[i];
        if (i >= boxes.last[b]) break;
      }
    }
    expect(sum).toBe(tree.total);
  });

  it("grows past its first size", () => {
    const lines = Array.from({ length: 3000 }, (_, i) => `f${i} 1`);
    expect(seen(treeOf(lines.join("\n")), 6000)).toHaveLength(3001);
  });

  it("finds the box under the pointer", () => {
    const tree = treeOf("a;x 1\nb 1");
    const boxes = new Boxes();
    layout(tree, WHOLE, 100, 0, 99, boxes);
    const name = (x: number, row: number) => {
      const b = boxAt(tree, boxes, x, row);
      return b < 0 ? null : nameOf(tree, boxes.node[b]);
    };
    expect([name(10, 0), name(10, 1), name(60, 1), name(10, 2), name(60, 2)]).toEqual([
      "all",
      "a",
      "b",
      "x",
      null,
    ]);
  });

  it("keeps a view inside the whole", () => {
    expect(clamp({ x0: -0.5, x1: 0.5 })).toEqual({ x0: 0, x1: 1 });
    expect(clamp({ x0: 0.9, x1: 1.1 }).x1).toBeCloseTo(1);
    expect(clamp({ x0: -3, x1: 9 })).toEqual(WHOLE);
    expect(clamp({ x0: 0.5, x1: 0.5 }).x1).toBeGreaterThan(0.5);
  });
});

describe("a zoom in a link", () => {
  const tree = treeOf("a;x 1\na;y 1\nb 2");
  it("leads back to its frame", () => {
    const place = placeOf(tree, zoomToNode(tree, at(tree, "a", "y")));
    expect(place).toEqual({ x0: 0.25, x1: 0.5, node: at(tree, "a", "y") });
  });
  it("leads back to its part of the width", () => {
    expect(placeOf(tree, zoomToView({ x0: 0.25, x1: 0.5 }))).toEqual({
      x0: 0.25,
      x1: 0.5,
      node: 0,
    });
  });
  it.each(["nonsense", "ffffffff", "1-2-3", "~", "0.5~0.5", "0.9~0.1", "-1~2", "NaN~1", "-"])(
    "%s is the whole",
    (zoom) => expect(placeOf(tree, zoom)).toEqual({ x0: 0, x1: 1, node: 0 }),
  );
  it("to everything is none", () => {
    expect(zoomToNode(tree, 0)).toBe("");
    expect(zoomToView(WHOLE)).toBe("");
  });
});

describe("keys", () => {
  const tree = treeOf("a;x 3\na;y 1\nb 1");
  const go = (from: number, key: string) => nameOf(tree, step(tree, from, key) as number);
  it("go out, up to the heaviest, and along siblings, and stop at the edges", () => {
    expect(go(0, "ArrowDown")).toBe("a");
    expect(go(at(tree, "a"), "ArrowDown")).toBe("x");
    expect(go(at(tree, "a", "x"), "ArrowRight")).toBe("y");
    expect(go(at(tree, "a", "y"), "ArrowRight")).toBe("y");
    expect(go(at(tree, "a", "y"), "ArrowLeft")).toBe("x");
    expect(go(at(tree, "a", "x"), "ArrowLeft")).toBe("x");
    expect(go(at(tree, "b"), "ArrowDown")).toBe("b");
    expect(go(0, "ArrowUp")).toBe("all");
    expect(step(tree, 0, "q")).toBeNull();
  });
});

describe("labels", () => {
  const labels = new Labels((text) => 10 * text.length);
  it("are whole where there is room, then shortened, then cut, then none", () => {
    expect(labels.fit("net/http.(*conn).serve", 300)).toBe("net/http.(*conn).serve");
    expect(labels.fit("net/http.(*conn).serve", 190)).toBe("http.(*conn).serve");
    expect(labels.fit("net/http.(*conn).serve", 70)).toBe("http.(…");
    expect(labels.fit("net/http.(*conn).serve", 20)).toBe("");
  });
  it.each([
    ["github.com/a/b/c.(*T).M", "c.(*T).M"],
    ["at::_ops::linear::call(at::Tensor const&)", "at::_ops::linear::call"],
    ["operator()(int)", "operator()"],
    ["<module>", "<module>"],
    ["runtime.mallocgc", "runtime.mallocgc"],
    ["libfoo.so+0x1f", "libfoo.so+0x1f"],
    ["a / b", "a / b"],
  ])("%s is shortened to %s", (long, short) => expect(shorten(long)).toBe(short));
});
