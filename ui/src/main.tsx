// SPDX-License-Identifier: Apache-2.0
import { render } from "preact";
import { App } from "./app";
import { createStore, StoreProvider } from "./state/store";
import "uplot/dist/uPlot.min.css";
import "./styles/base.css";
import "./styles/controls.css";
import "./styles/profile.css";
import "./styles/flame.css";
import "./styles/table.css";
import "./styles/timeline.css";
import "./styles/pages.css";

const root = document.getElementById("app");
if (!root) throw new Error("index.html has no #app");
render(
  <StoreProvider value={createStore(window)}>
    <App />
  </StoreProvider>,
  root,
);
