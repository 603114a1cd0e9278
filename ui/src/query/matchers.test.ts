// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { formatQuery, nodesOnly, parseQuery, pick, picked, QueryError } from "./matchers";

describe("a query", () => {
  it.each([
    ["", ""],
    ["{}", ""],
    [' { node = "a" , comm=~"x.*", } ', '{node="a",comm=~"x.*"}'],
    ["node!='a',b!~`c\\d`", '{node!="a",b!~"c\\\\d"}'],
    ['{a="say \\"hi\\"\\n\\\\"}', '{a="say \\"hi\\"\\n\\\\"}'],
    ['{a=""}', '{a=""}'],
  ])("%s is read", (text, want) => expect(formatQuery(parseQuery(text))).toBe(want));

  it.each([
    ["{node}", 5, "one of ="],
    ['{node="a}', 6, "closing quote"],
    ["{node=a}", 6, "value in quotes"],
    ['{node="a"', 9, "closing brace"],
    ['{node="a"} x', 11, "behind the brace"],
    ['{node="a" comm="b"}', 10, "comma"],
    ['{1="a"}', 1, "label name"],
    ['node="a"}', 8, "no opening brace"],
  ])("%s is refused at %i", (text, at, message) => {
    try {
      parseQuery(text);
    } catch (e) {
      expect(e).toBeInstanceOf(QueryError);
      expect((e as QueryError).message).toContain(message);
      expect((e as QueryError).at).toBe(at);
      return;
    }
    throw new Error("it was read");
  });

  it("comes back from any picked values as they were", () => {
    const odd = ["a|b", "c++", "(x)", "back\\slash", 'quo"te', "日本", "a.b-c/d:2", "kworker/u8:2"];
    for (const values of [odd, [odd[0]], odd.slice(2)]) {
      const query = formatQuery(pick([], "comm", values));
      expect(picked(parseQuery(query), "comm")).toEqual(values);
      const expression = parseQuery(query)[0];
      if (expression.op === "=~") {
        for (const v of values) expect(v).toMatch(new RegExp(`^(?:${expression.value})$`));
      }
    }
  });

  it("keeps other matchers and their order when one is picked anew", () => {
    const matchers = parseQuery('{a="1",b="2",c="3"}');
    expect(formatQuery(pick(matchers, "b", ["x", "y"]))).toBe('{a="1",b=~"x|y",c="3"}');
    expect(formatQuery(pick(matchers, "b", []))).toBe('{a="1",c="3"}');
  });

  it("is no list of values when it is another expression", () => {
    for (const q of ['{a=~"x.*"}', '{a!="x"}', '{a="x",a="y"}', '{a=~"x\\\\d"}']) {
      expect(picked(parseQuery(q), "a")).toBeNull();
    }
    expect(picked([], "a")).toEqual([]);
  });

  it("leaves only the nodes where readings are asked for", () => {
    expect(nodesOnly('{comm="x",node=~"a|b",rank!="0"}')).toBe('{node=~"a|b"}');
    expect(nodesOnly("{broken")).toBe("");
  });
});
