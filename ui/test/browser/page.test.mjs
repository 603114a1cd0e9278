// SPDX-License-Identifier: Apache-2.0
// The page in a browser, against whatever server there is:
//
//   DIAGON_URL   the server's page; without it the fixture is started
//   DIAGON_BUSY  a function that a program known to be busy spends its time in
//   DIAGON_SHOTS the folder that screenshots go into
//
// What is checked is read off the page as a person or a screen reader meets it.

import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { after, before, test } from "node:test";
import { startFixture } from "../fixture/server.mjs";
import { launch, OUT } from "./browser.mjs";

const BUSY = process.env.DIAGON_BUSY ?? "burn_hot";
/** A server that has just started has samples within a few windows. */
const FIRST_SAMPLES_MS = 60_000;

let fixture;
let browser;
let page;
let url;
const wrong = [];

before(async () => {
  if (!process.env.DIAGON_URL) fixture = await startFixture();
  url = process.env.DIAGON_URL ?? fixture.url;
  browser = await launch();
  await mkdir(OUT, { recursive: true });
  page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
  page.setDefaultTimeout(15_000);
  page.on("pageerror", (e) => wrong.push(String(e)));
  page.on("console", (m) => {
    if (["error", "warning"].includes(m.type())) wrong.push(m.text());
  });
  page.on("request", (r) => {
    if (new URL(r.url()).origin !== new URL(url).origin && !r.url().startsWith("data:")) {
      wrong.push(`the page asked another host: ${r.url()}`);
    }
  });
});

after(async () => {
  await browser?.close();
  await fixture?.close();
});

const open = async (query = "") => {
  await page.goto(new URL(query, url).href);
};
const param = (name) => new URL(page.url()).searchParams.get(name);
const frame = (name) => page.locator(`[data-biggest] li[data-function="${name}"]`).first();
const row = (name) => page.locator(`.top-line[data-function="${name}"]`).first();
const shot = (name) => page.screenshot({ path: `${OUT}/${name}.png` });

/** Waits until the address has, or has no longer, a parameter. */
async function untilParam(name, has) {
  await page.waitForFunction(
    ([n, h]) => new URLSearchParams(location.search).has(n) === h,
    [name, has],
  );
}

test("the page loads and its flame graph has the busy function", async () => {
  await open("?from=now-5m");
  const until = Date.now() + FIRST_SAMPLES_MS;
  for (;;) {
    await page.waitForLoadState("networkidle");
    if ((await frame(BUSY).count()) > 0) break;
    const seen = await page.locator("main").innerText();
    assert.ok(
      Date.now() < until,
      `no frame of ${BUSY} after ${FIRST_SAMPLES_MS} ms; the page says:\n${seen}`,
    );
    await page.waitForTimeout(2000);
    await page.getByRole("button", { name: "refresh" }).click();
  }
  const told = await frame(BUSY).innerText();
  assert.match(told, /%/, "a frame tells its share");
  assert.match(told, /cores/, "and how many cores that is");
  assert.ok(Number(await frame(BUSY).getAttribute("data-value")) > 0);
  await shot("1-profile");
});

test("the canvas is painted in more colours than one", async () => {
  const colours = await page.locator(".flame canvas").evaluate((c) => {
    const { data } = c.getContext("2d").getImageData(0, 0, c.width, Math.min(c.height, 300));
    const seen = new Set();
    for (let i = 0; i < data.length; i += 4 * 97)
      seen.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
    return seen.size;
  });
  assert.ok(colours > 3, `${colours} colours`);
});

test("a click zooms, the path is shown, Escape shows all again", async () => {
  await page.locator(".flame canvas").click({ position: { x: 8, y: 30 } });
  await untilParam("zoom", true);
  await page.getByRole("navigation", { name: "zoom" }).waitFor();
  await page.keyboard.press("Escape");
  await untilParam("zoom", false);
  assert.equal(await page.getByRole("navigation", { name: "zoom" }).count(), 0);
});

test("the keyboard goes along frames and says which", async () => {
  const canvas = page.locator(".flame canvas");
  await canvas.focus();
  await page.keyboard.press("Home"); // from where the click before left off
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  const said = page.locator(".flame [aria-live]");
  await page.waitForFunction(
    () => document.querySelector(".flame [aria-live]")?.textContent !== "",
  );
  assert.match(await said.innerText(), /2 deep/);
  await page.keyboard.press("Enter");
  await untilParam("zoom", true);
  await page.keyboard.press("Escape");
  await untilParam("zoom", false);
});

test("a tooltip tells function and numbers", async () => {
  await page.locator(".flame canvas").hover({ position: { x: 8, y: 30 } });
  const tip = page.getByRole("tooltip");
  await tip.waitFor();
  assert.match(await tip.innerText(), /total[\s\S]*%[\s\S]*self/);
  await page.mouse.move(0, 0);
});

test("/ searches: how many frames match, and the table shows no others", async () => {
  await page.locator("body").press("/");
  await page.keyboard.type(BUSY);
  const found = page.locator("[data-found]");
  await page.waitForFunction(() =>
    /match/.test(document.querySelector("[data-found]")?.textContent ?? ""),
  );
  assert.match(await found.innerText(), /^[1-9]\S* frames? match(es)?, \d/);
  await row(BUSY).waitFor();
  const names = await page
    .locator(".top-rows [data-function]")
    .evaluateAll((all) => all.map((e) => e.dataset.function));
  assert.ok(
    names.every((n) => n.toLowerCase().includes(BUSY.toLowerCase())),
    names.join(),
  );
  assert.equal(param("search"), BUSY);
  await shot("2-search");
});

test("a click in the top table goes to the function", async () => {
  await row(BUSY).getByRole("button", { name: BUSY, exact: true }).click();
  await untilParam("zoom", true);
  assert.ok((await page.getByRole("navigation", { name: "zoom" }).innerText()).includes(BUSY));
  await shot("3-zoom");
});

test("the address alone brings the same page back", async () => {
  const address = page.url();
  const other = await browser.newPage();
  await other.goto(address);
  await other.getByRole("navigation", { name: "zoom" }).waitFor();
  assert.equal(await other.getByRole("searchbox", { name: "search functions" }).inputValue(), BUSY);
  assert.ok((await other.getByRole("navigation", { name: "zoom" }).innerText()).includes(BUSY));
  assert.equal(other.url(), address);
  await other.close();
});

test("the back button undoes the zoom", async () => {
  await page.goBack();
  await untilParam("zoom", false);
  assert.equal(await page.getByRole("navigation", { name: "zoom" }).count(), 0);
  await page.getByRole("searchbox", { name: "search functions" }).fill("");
});

test("the table sorts by self and total", async () => {
  const column = async (i) => {
    const cells = await page.locator(`.top-rows .top-line .share`).allInnerTexts();
    return cells
      .filter((_, at) => at % 2 === i)
      .map((t) => Number.parseFloat(t.replace(/[^\d.]/g, "")));
  };
  for (const [i, by] of ["self", "total"].entries()) {
    await page.locator(`[data-sort=${by}]`).click();
    await page.waitForFunction((b) => {
      const head = document.querySelector(`[data-sort=${b}]`)?.parentElement;
      return head?.getAttribute("aria-sort") !== "none";
    }, by);
    if (i === 0 && param("reverse") === "1") await page.locator(`[data-sort=${by}]`).click();
    const shares = await column(i);
    assert.ok(shares.length > 3);
    assert.deepEqual(
      shares,
      shares.toSorted((a, b) => b - a),
    );
  }
});

test("turned over, the busy function is among the leaves at the root", async () => {
  await page.getByRole("button", { name: "inverted" }).click();
  await page.locator('[data-flame="inverted flame graph"]').waitFor();
  await frame(BUSY).waitFor({ state: "attached" });
  assert.match(await frame(BUSY).innerText(), /1 deep/);
  await page.getByRole("button", { name: "callees", exact: true }).click();
});

test("between callers and callees of the busy function", async () => {
  await page.getByRole("searchbox", { name: "search functions" }).fill(BUSY);
  await row(BUSY).hover();
  await row(BUSY)
    .getByRole("button", { name: `callers and callees of ${BUSY}` })
    .click();
  const callers = page.locator(`[data-flame="callers of ${BUSY}"] [data-biggest] li`);
  await callers.first().waitFor({ state: "attached" });
  assert.ok((await callers.count()) > 1, "somebody calls it");
  await shot("4-sandwich");
  await page.getByRole("searchbox", { name: "search functions" }).fill("");
  await page.getByRole("button", { name: "callees", exact: true }).click();
});

test("another sample type shows its own numbers", async () => {
  const select = page.getByRole("combobox", { name: "sample type" });
  await page.waitForFunction(() => document.querySelectorAll("select option").length > 1);
  await select.selectOption("samples");
  await untilParam("type", true);
  await page.waitForFunction(() =>
    /samples$/.test(document.querySelector("[data-total]")?.textContent ?? ""),
  );
  await select.selectOption("cpu");
  await page.waitForFunction(() =>
    /cpu$/.test(document.querySelector("[data-total]")?.textContent ?? ""),
  );
});

test("a node can be picked from those there are, and the query says so", async () => {
  await page.locator('[data-popover="label node"]').click();
  const first = page.locator(".picker-list input[type=checkbox]").first();
  await first.waitFor();
  const node = await first.getAttribute("data-value");
  await first.check();
  await untilParam("query", true);
  assert.equal(param("query"), `{node="${node}"}`);
  await page.keyboard.press("Escape");
  assert.equal(await page.getByRole("textbox", { name: "query" }).inputValue(), `{node="${node}"}`);
  await page.locator("[data-total]").waitFor();
});

test("a query that cannot be read says where, one that matches nothing what to do", async () => {
  const text = page.getByRole("textbox", { name: "query" });
  await text.fill('{node="x');
  await page.getByText("closing quote is missing").waitFor();
  await text.fill('{comm="there is no such program"}');
  await text.press("Enter");
  await page.getByRole("heading", { name: "No cpu samples here" }).waitFor();
  await page.getByRole("button", { name: "show everything" }).click();
  await page.locator("[data-total]").waitFor();
});

test("the timeline has the rate and the host's readings; dragging chooses a range", async () => {
  for (const chart of ["cpu rate", "CPU", "Memory", "Pressure", "Network", "Disk"]) {
    await page.locator(`[data-chart="${chart}"]`).waitFor();
  }
  const over = page.locator('[data-chart="CPU"] .u-over');
  await over.waitFor();
  const box = await over.boundingBox();
  await page.mouse.move(box.x + 0.4 * box.width, box.y + 20);
  await page.mouse.down();
  await page.mouse.move(box.x + 0.7 * box.width, box.y + 22, { steps: 5 });
  await page.mouse.move(box.x + 0.95 * box.width, box.y + 24, { steps: 5 });
  await page.mouse.up();
  await untilParam("to", true);
  const seconds = (Date.parse(param("to")) - Date.parse(param("from"))) / 1000;
  assert.ok(seconds > 60 && seconds < 260, `${seconds} s of 300`);
  await page.goBack();
  await untilParam("to", false);
});

test("two ranges are compared", async () => {
  await page.getByRole("button", { name: "compare" }).click();
  await page.getByText("the range before").first().waitFor();
  await untilParam("diff", true);
  await page.waitForFunction(
    () => document.querySelector(".top.diff") || document.querySelector(".notice, .failure"),
  );
  assert.equal(await page.locator(".failure").count(), 0, await page.locator("main").innerText());
  await shot("5-diff");
  await page.getByRole("button", { name: "compare" }).click();
});

test("nodes are told with what they can and cannot do", async () => {
  await page.getByRole("link", { name: /Nodes/ }).click();
  await page.locator("[data-node]").first().waitFor();
  assert.match(await page.locator("[data-node]").first().innerText(), /connected/);
  await shot("6-nodes");
});

test("a capture is started, seen through its states, and its samples are shown", async () => {
  await page.getByRole("link", { name: "Captures" }).click();
  const form = page.getByRole("form", { name: "start a cpu capture" });
  await form.getByRole("checkbox").first().waitFor();
  await form.locator("[name=duration]").fill("nonsense");
  await page.getByText("is no duration").waitFor();
  await form.locator("[name=duration]").fill("2s");
  const before = await page.locator("[data-capture]").count();
  await form.getByRole("button", { name: "start cpu capture" }).click();
  await page.waitForFunction((n) => document.querySelectorAll("[data-capture]").length > n, before);
  const newest = page.locator("[data-capture]").first();
  await page.waitForFunction(
    () => !["PENDING", "RUNNING"].includes(document.querySelector("[data-capture]")?.dataset.state),
    null,
    { timeout: 60_000 },
  );
  assert.equal(await newest.getAttribute("data-state"), "SUCCEEDED", await newest.innerText());
  const download = page.waitForEvent("download");
  await newest.getByRole("link").first().click();
  assert.match((await download).suggestedFilename(), /\.cpu\.pb\.gz$/);
  await shot("7-captures");
  await newest.getByRole("button", { name: "flame graph" }).click();
  await page.locator("[data-total]").waitFor();
  assert.ok(param("capture"));
  assert.ok((await page.locator("[data-biggest] li").count()) > 0);
});

test("nothing went wrong that the page did not tell, and no other host was asked", () => {
  assert.deepEqual(wrong, []);
});
