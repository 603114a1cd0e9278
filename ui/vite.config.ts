// SPDX-License-Identifier: Apache-2.0
import { defineConfig } from "vitest/config";

// A server to develop against: `DIAGON_URL=http://127.0.0.1:7170 npm run dev`.
const server = process.env.DIAGON_URL ?? "http://127.0.0.1:7170";

export default defineConfig({
  // Relative, so that the page also works below a path (a Kubernetes proxy, an ingress).
  base: "./",
  build: { target: "es2022", sourcemap: false, chunkSizeWarningLimit: 400 },
  server: { proxy: { "/api": server } },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
});
