// SPDX-License-Identifier: Apache-2.0
// What only a server made for the purpose can show: losses, cut graphs, no node, no data, refusals,
// a server that goes away, answers that are none.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startFixture } from "../fixture/server.mjs";
import { launch } from "./browser.mjs";

let browser;

before(async () => {
  browser = await launch();
});
after(() => browser?.close());

/** Runs a test on a page of its own against a fixture of its own. */
async function on(scenario, query, check, options = {}) {
  const fixture = await startFixture({ scenario });
  const page = await browser.newPage({ viewport: { width: 1300, height: 850 }, ...options });
  page.setDefaultTimeout(15_000);
  try {
    await page.goto(new URL(query, fixture.url).href);
    await check(page, fixture);
  } finally {
    await page.close();
    await fixture.close();
  }
}

test("losses stand beside the flame graph, as a share, with place and node", () =>
  on("normal", "?from=now-5m", async (page) => {
    const losses = page.getByRole("status", { name: "losses" });
    await page.getByText(/% lost at ring on gpu-node-17/).waitFor();
    assert.match(await losses.innerText(), /^\d+\.\d+\s% lost at ring on gpu-node-17 \(412\)$/);
  }));

test("a cut graph says how much was put together", () =>
  on("big", "?from=now-5m", async (page) => {
    await page.getByText(/small frames put together, \d/).waitFor();
    assert.ok(
      (await page.locator(".top-rows .top-line").count()) < 80,
      "only rows in sight are in the page",
    );
  }));

test("frames too narrow to draw make a block that a click opens", () =>
  on("big", "?from=now-5m&show=flame&host=0", async (page) => {
    const canvas = page.locator(".flame canvas");
    await page.locator("[data-biggest] li").first().waitFor({ state: "attached" });
    const { width, height } = await canvas.boundingBox();
    const tip = page.getByRole("tooltip");
    let found = false;
    for (let y = 30; y < height && !found; y += 20) {
      for (let x = 40; x < width && !found; x += 23) {
        await page.mouse.move(0, 0);
        await canvas.hover({ position: { x, y } });
        found = (await tip.count()) > 0 && /\d small frames/.test(await tip.innerText());
        if (found) await canvas.click({ position: { x, y } });
      }
    }
    assert.ok(found, "no block of small frames is to be seen");
    await page.waitForFunction(() => new URLSearchParams(location.search).has("zoom"));
    await page.getByRole("navigation", { name: "zoom" }).waitFor();
  }));

test("without a node the page says how to connect one", () =>
  on("empty", "", async (page) => {
    await page.getByRole("heading", { name: "No node has connected yet" }).waitFor();
    await page.getByText("diagon agent --channel 127.0.0.1:7171/diagnostics").waitFor();
  }));

test("without data in the range the page offers wider ones", () =>
  on("nodata", "", async (page) => {
    await page.getByRole("heading", { name: "No cpu samples here" }).waitFor();
    await page.getByText(/infra-3 \(last heard of 9 min ago\)/).waitFor();
    await page.locator(".notice").getByRole("button", { name: "6h" }).click();
    await page.waitForFunction(() => location.search.includes("from=now-6h"));
  }));

test("what the server refuses is told in its own words", () =>
  on("normal", `?query=${encodeURIComponent('{comm=~"("}')}`, async (page) => {
    await page
      .getByText(/query: matcher comm: Invalid regular expression/)
      .first()
      .waitFor();
  }));

test("a range that is none is told once, and not as one without samples", () =>
  on("normal", "?from=xx", async (page) => {
    await page.getByText(/"xx" is no time/).waitFor();
    await page.getByText("no answer").first().waitFor();
    await page.waitForLoadState("networkidle");
    assert.equal(await page.locator("main .failure").count(), 1);
    assert.equal(await page.getByText(/in this range/).count(), 0);
  }));

test("a graph that is cut says what is told of the drawn frames alone", () =>
  on("big", "?from=now-5m&tree=up&host=0", async (page) => {
    await page.getByText(/^Of the frames that are drawn/).waitFor();
    await page.goto(page.url().replace("tree=up", "tree=down"));
    await page.locator(".top-rows .top-line").first().waitFor();
    assert.equal(await page.getByText(/^Of the frames that are drawn/).count(), 0);
  }));

test("a base without samples is told", () =>
  on("normal", "?diff=1&base_from=now-9d&base_to=now-8d", async (page) => {
    await page.getByText("The base has no samples").waitFor();
  }));

test("a capture that is refused says why; one under way can be cancelled", () =>
  on("normal", "?view=captures", async (page) => {
    const form = page.getByRole("form", { name: "start a cpu capture" });
    await form.getByRole("checkbox").first().waitFor();
    await form.locator("[name=pids]").fill("1");
    await form.getByRole("button", { name: "start cpu capture" }).click();
    await page.getByText("pid 1 cannot be captured here").waitFor();

    await form.locator("[name=pids]").fill("4711");
    assert.equal(await form.getByRole("alert").count(), 0, "the refusal was of another order");
    await form.locator("[name=duration]").fill("60s");
    await form.getByRole("button", { name: "start cpu capture" }).click();
    const first = page.locator('[data-state="RUNNING"]').first();
    await first.waitFor();
    await first.getByRole("button", { name: "cancel" }).click();
    await page.locator('[data-state="CANCELLED"]').waitFor();
    await page.getByText("cancelled by a person").first().waitFor();
  }));

test("a capture's rate is over its own duration", () =>
  on("normal", "?view=captures", async (page) => {
    const done = page.locator('[data-state="SUCCEEDED"]').first();
    await done.getByRole("button", { name: "flame graph" }).click();
    await page.getByText(/cores over 10\.?0*\ss$/).waitFor();
  }));

test("a capture that came to half says of each target what became of it", () =>
  on("normal", "?view=captures", async (page) => {
    const partial = page.locator('[data-state="PARTIAL"]');
    await partial.waitFor();
    assert.match(
      await partial.innerText(),
      /refused[\s\S]*the node allows captures of at most 10 s/,
    );
  }));

test("a server that goes away is told, and another try heals", () =>
  on("normal", "?from=now-5m", async (page) => {
    await page.locator("[data-total]").waitFor();
    await page.route("**/api/**", (r) => r.abort("connectionrefused"));
    await page.getByRole("button", { name: "refresh" }).click();
    await page.getByText("The server cannot be reached").first().waitFor();
    assert.equal(await page.locator("[data-total]").count(), 1, "what is known stays");
    await page.unroute("**/api/**");
    await page.getByRole("button", { name: "try again" }).first().click();
    await page.getByRole("button", { name: "refresh" }).click();
    await page.waitForFunction(() => !document.querySelector(".failure, .head-error"));
  }));

test("an answer that is no tree is refused with the place, and draws nothing", () =>
  on("normal", "?view=nodes", async (page, fixture) => {
    await page.route("**/api/v1/profiles*", async (r) => {
      const answer = await r.fetch();
      const body = await answer.json();
      body.depth[3] = 999;
      await r.fulfill({ response: answer, json: body });
    });
    await page.goto(new URL("?from=now-5m", fixture.url).href);
    await page.getByText(/profile\.depth\[3\]: want a depth of at most \d+, got 999/).waitFor();
    assert.equal(await page.locator(".flame").count(), 0);
  }));

test("names from programs are text, never mark-up", () =>
  on("normal", "?view=nodes", async (page, fixture) => {
    const evil = '<img src=x onerror="document.title=1">';
    await page.route("**/api/v1/profiles*", async (r) => {
      const answer = await r.fetch();
      const body = await answer.json();
      for (const f of body.functions) f.name = evil + f.name;
      await r.fulfill({ response: answer, json: body });
    });
    await page.goto(new URL("?from=now-5m", fixture.url).href);
    await page.locator(".top-rows .top-line").first().waitFor();
    await page.locator(".flame canvas").hover({ position: { x: 30, y: 30 } });
    assert.match(await page.getByRole("tooltip").innerText(), /<img/);
    assert.equal(await page.locator("main img").count(), 0);
    assert.equal(await page.title(), "diagon");
  }));

test("live, the page fetches anew by itself and keeps the zoom", () =>
  on("normal", "?from=now-5m&live=2", async (page) => {
    await page.locator("[data-total]").waitFor();
    await page.locator(".flame canvas").click({ position: { x: 8, y: 30 } });
    const crumbs = page.getByRole("navigation", { name: "zoom" });
    await crumbs.waitFor();
    const path = await crumbs.getByRole("button").allInnerTexts();
    let asked = 0;
    page.on("request", (r) => {
      if (r.url().includes("/profiles")) asked++;
    });
    await page.waitForTimeout(5000);
    assert.ok(asked >= 2, `${asked} questions in 5 s`);
    assert.deepEqual(await crumbs.getByRole("button").allInnerTexts(), path);
  }));

for (const width of [380, 700, 1100]) {
  test(`on a screen ${width} wide nothing sticks out to the side`, () =>
    on(
      "normal",
      "?from=now-5m",
      async (page, fixture) => {
        for (const query of ["?from=now-5m", "?diff=1", "?view=captures", "?view=nodes"]) {
          await page.goto(new URL(query, fixture.url).href);
          await page.waitForLoadState("networkidle");
          const over = await page.evaluate(
            () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
          );
          assert.ok(over <= 0, `${query} is ${over} pixels too wide`);
        }
      },
      { viewport: { width, height: 800 } },
    ));
}
