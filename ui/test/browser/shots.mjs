// SPDX-License-Identifier: Apache-2.0
// Takes screenshots of every view, light and dark, wide and narrow: `node test/browser/shots.mjs`.
// DIAGON_URL points it at a real server; without, it starts the fixture.

import { mkdir } from "node:fs/promises";
import { startFixture } from "../fixture/server.mjs";
import { launch, OUT } from "./browser.mjs";

const VIEWS = {
  profile: "?from=now-1h",
  search: "?from=now-1h&show=flame&search=alloc",
  inverted: "?from=now-1h&show=flame&tree=up",
  sandwich: "?from=now-1h&tree=sandwich&fn=malloc",
  diff: "?from=now-15m&diff=1",
  captures: "?view=captures",
  nodes: "?view=nodes",
};

const only = process.argv.slice(2);
const server = process.env.DIAGON_URL
  ? null
  : await startFixture({ scenario: process.env.SCENARIO });
const url = process.env.DIAGON_URL ?? server.url;
const browser = await launch();
await mkdir(OUT, { recursive: true });
try {
  for (const scheme of ["light", "dark"]) {
    for (const [size, viewport] of Object.entries({
      wide: { width: 1500, height: 950 },
      narrow: { width: 420, height: 900 },
    })) {
      const page = await browser.newPage({ colorScheme: scheme, viewport });
      for (const [name, query] of Object.entries(VIEWS)) {
        if (only.length > 0 && !only.includes(name)) continue;
        await page.goto(new URL(query, url).href);
        await page.waitForLoadState("networkidle");
        await page.waitForTimeout(300);
        await page.screenshot({
          path: `${OUT}/${name}-${scheme}-${size}.png`,
          fullPage: size === "narrow",
        });
      }
      await page.close();
    }
  }
} finally {
  await browser.close();
  await server?.close();
}
