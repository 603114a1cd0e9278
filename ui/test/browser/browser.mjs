// SPDX-License-Identifier: Apache-2.0
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

/** Where screenshots go. */
export const OUT = process.env.DIAGON_SHOTS ?? fileURLToPath(new URL("../out", import.meta.url));

/** Starts the system's Chromium, kept from asking anyone but the page's server for anything. */
export function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}
