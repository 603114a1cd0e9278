// SPDX-License-Identifier: Apache-2.0
import { afterEach, describe, expect, it, vi } from "vitest";
import * as answers from "./answers";
import * as client from "./client";
import { flamegraph, top } from "./profile";

/** An answer as the server gives it, with some of it changed. */
function answer(change: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    type: "cpu",
    unit: "nanoseconds",
    total: 10,
    functions: [{ name: "main", module: "busy", file: "busy.c", realm: "user" }],
    function: [0, 0, -1],
    depth: [0, 1, 1],
    value: [10, 6, 4],
    self: [0, 6, 4],
    cut: { nodes: 3, value: 4 },
    losses: [{ node: "n", place: "ring", count: 3 }],
    from: "2026-12-01T12:00:00Z",
    to: "2026-12-01T12:15:00Z",
    ...change,
  };
}

describe("a flame graph", () => {
  it("is read", () => {
    const fg = flamegraph(answer());
    expect([...fg.value]).toEqual([10, 6, 4]);
    expect(fg.cut).toEqual({ nodes: 3, value: 4 });
    expect(fg.to - fg.from).toBe(900e3);
    expect(fg.base).toBeNull();
  });

  it("without samples is read, empty lists written as null or not", () => {
    const none = {
      functions: null,
      function: null,
      depth: [],
      value: [],
      self: null,
      total: 0,
      cut: null,
      losses: null,
    };
    expect(flamegraph(answer(none)).function).toHaveLength(0);
  });

  it("of a diff has the base's numbers", () => {
    const fg = flamegraph(answer({ base_total: 9, base_value: [9, 0, 0], base_self: [9, 0, 0] }));
    expect(fg.base?.total).toBe(9);
  });

  it("in numbers beyond 2^53 may be off in the last digits", () => {
    const big = 2 ** 60;
    flamegraph(answer({ total: big, value: [big, big * (1 + 1e-15), 0], self: [0, 0, 0] }));
  });

  it.each<[string, Record<string, unknown>, string]>([
    [
      "a function that does not exist",
      { function: [0, 7, -1] },
      "profile.function[1]: want an index below 1",
    ],
    ["a function below -1", { function: [0, -2, -1] }, "profile.function[1]"],
    ["half a function", { function: [0, 0.5, -1] }, "profile.function[1]"],
    ["a level left out", { depth: [0, 2, 1] }, "profile.depth[1]: want a depth of at most 1"],
    ["a first frame that is not outermost", { depth: [1, 1, 1] }, "profile.depth[0]"],
    ["columns of different lengths", { self: [0, 6] }, "profile.self: want 3 rows"],
    [
      "a frame heavier than what it stands on",
      { value: [10, 60, 4] },
      "profile.value[0]: want at least",
    ],
    [
      "text for a number",
      { value: [10, "6", 4] },
      'profile.value[1]: want a number of 0 or more, got "6"',
    ],
    ["a negative value", { value: [10, -6, 4] }, "profile.value[1]"],
    ["a number that JSON cannot hold", { total: null }, "profile.total"],
    [
      "a function without a name",
      { functions: [{ module: "x" }] },
      "profile.functions[0].name: want a string, got nothing",
    ],
    ["no time", { from: "soon" }, "profile.from: want a time"],
    ["an object for a column", { depth: { length: 3 } }, "profile.depth: want a list"],
    [
      "base columns of another length",
      { base_total: 1, base_value: [1], base_self: [1] },
      "profile.base_value",
    ],
  ])("with %s is refused", (_, change, message) => {
    expect(() => flamegraph(answer(change))).toThrow(message);
  });

  it.each([null, 5, "x", [], true])("that is %j is refused", (v) => {
    expect(() => flamegraph(v)).toThrow("want an object");
  });

  it("survives any damage to any field with an error of its own or an answer", () => {
    const junk = [null, -1, 1e300, "x", [], {}, [null], [[0]], { length: 9 }, true];
    for (const key of Object.keys(answer())) {
      for (const v of junk) {
        try {
          flamegraph(answer({ [key]: v }));
        } catch (e) {
          expect((e as Error).name, `${key} = ${JSON.stringify(v)}`).toBe("DecodeError");
        }
      }
    }
  });
});

describe("other answers", () => {
  it("a top table is read", () => {
    const row = { function: "f", module: "m", file: "", realm: "user", self: 1, total: 2 };
    expect(top({ type: "cpu", unit: "ns", total: 2, rows: [row] }).rows[0].name).toBe("f");
  });
  it("a node that told little is read", () => {
    const [n] = answers.nodes({ nodes: [{ name: "n", host: { kernel: "6.1", cpus: 4 } }] });
    expect(n.connected).toBe(false);
    expect(n.host).toEqual([
      ["kernel", "6.1"],
      ["cpus", "4"],
    ]);
    expect(n.health.status).toBe("unknown");
  });
  it("a series whose times go back is refused", () => {
    const s = {
      metric: "m",
      labels: {},
      points: [
        [2, 1],
        [1, 1],
      ],
    };
    expect(() => answers.series({ series: [s] })).toThrow(
      "series[0].points: want times that ascend",
    );
  });
  it("a point that is none is refused", () => {
    const s = { metric: "m", labels: {}, points: [[1]] };
    expect(() => answers.series({ series: [s] })).toThrow("points[0]: want [unix_ms, value]");
  });
  it("a capture without a state is refused", () => {
    expect(() => answers.captures({ captures: [{ id: "1", kind: "cpu" }] })).toThrow(
      "captures[0].state",
    );
  });
});

describe("calls", () => {
  afterEach(() => vi.unstubAllGlobals());
  const answering = (body: string, status = 200) => {
    const asked = vi.fn(
      async (_path: string, _init?: RequestInit) => new Response(body, { status }),
    );
    vi.stubGlobal("fetch", asked);
    return asked;
  };

  it("carry their question escaped", async () => {
    const asked = answering('{"values": ["a"], "cut": false}');
    await client.labelValues("node", { query: '{a="&b"}', from: "now-5m", to: "now" });
    const url = new URL(asked.mock.calls[0][0], "http://x/");
    expect(url.pathname).toBe("/api/v1/labels/node/values");
    expect(url.searchParams.get("query")).toBe('{a="&b"}');
    expect(url.searchParams.has("capture")).toBe(false);
  });

  it("tell a refusal in the server's own words", async () => {
    answering('{"error": "query: unexpected end of input"}', 400);
    await expect(client.nodes()).rejects.toThrow("query: unexpected end of input");
  });

  it("tell what a proxy said without its mark-up, as a server that is away", async () => {
    answering("<html><h1>Bad   Gateway</h1></html>", 502);
    await expect(client.nodes()).rejects.toThrow(client.UnreachableError);
    await expect(client.nodes()).rejects.toThrow("HTTP 502 Bad Gateway");
  });

  it("ask a busy server again, as often as it says so and not for ever", async () => {
    vi.useFakeTimers();
    const busy = () =>
      new Response('{"error": "too many questions"}', {
        status: 503,
        headers: { "Retry-After": "1" },
      });
    const asked = vi.fn(async () =>
      asked.mock.calls.length < 3 ? busy() : new Response('{"nodes": []}'),
    );
    vi.stubGlobal("fetch", asked);
    const nodes = client.nodes();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await nodes).toEqual([]);
    expect(asked).toHaveBeenCalledTimes(3);

    vi.stubGlobal(
      "fetch",
      vi.fn(async () => busy()),
    );
    const refused = expect(client.nodes()).rejects.toThrow("too many questions");
    await vi.advanceTimersByTimeAsync(60_000);
    await refused;
    vi.useRealTimers();
  });

  it("say that an answer is not JSON", async () => {
    answering("hello");
    await expect(client.nodes()).rejects.toThrow("is not JSON: hello");
  });

  it("say that there is no server", async () => {
    vi.stubGlobal("fetch", async () => {
      throw new TypeError("Failed to fetch");
    });
    await expect(client.nodes()).rejects.toThrow(client.UnreachableError);
  });

  it("order a capture of all processes without naming any", async () => {
    const asked = answering('{"id": "1", "kind": "cpu", "state": "PENDING"}', 201);
    await client.startCapture({ nodes: ["n"], pids: [], duration: "10s", hz: 99 });
    expect(JSON.parse(String(asked.mock.calls[0][1]?.body))).toEqual({
      kind: "cpu",
      targets: { nodes: ["n"] },
      duration: "10s",
      hz: 99,
    });
  });
});
