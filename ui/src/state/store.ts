// SPDX-License-Identifier: Apache-2.0
// Holds the state that the address spells, and keeps the two the same.

import { effect, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { formatUrl, parseUrl, type State } from "./url";

export interface Store {
  readonly state: ReadonlySignal<State>;
  /** Rises when data that was fetched should be fetched again. */
  readonly tick: Signal<number>;
  /** Changes the state as a step that the back button undoes; replace makes it no step. */
  patch(change: Partial<State>, replace?: boolean): void;
  /** The address of the state with a change: for links. */
  link(change: Partial<State>): string;
}

/** What changes too often to be worth a step back. */
const MINOR: ReadonlySet<string> = new Set(["search", "sort", "reverse", "host", "live", "open"]);

export function createStore(page: Window): Store {
  const state = signal(parseUrl(page.location.search));
  const tick = signal(0);
  page.addEventListener("popstate", () => {
    state.value = parseUrl(page.location.search);
  });
  // "now" is another time at each refresh.
  effect(() => {
    const { live } = state.value;
    if (live === 0) return;
    const timer = page.setInterval(() => {
      if (page.document.visibilityState === "visible") tick.value++;
    }, live * 1000);
    return () => page.clearInterval(timer);
  });

  const path = () => page.location.pathname;
  return {
    state,
    tick,
    patch(change, replace) {
      const next = { ...state.peek(), ...change };
      const url = formatUrl(next);
      if (url === formatUrl(state.peek())) return;
      const minor = replace ?? Object.keys(change).every((k) => MINOR.has(k));
      if (minor) page.history.replaceState(null, "", path() + url);
      else page.history.pushState(null, "", path() + url);
      state.value = next;
    },
    link: (change) => path() + formatUrl({ ...state.peek(), ...change }),
  };
}

const StoreContext = createContext<Store | null>(null);
export const StoreProvider = StoreContext.Provider;

export function useStore(): Store {
  const store = useContext(StoreContext);
  if (!store) throw new Error("useStore: no StoreProvider above");
  return store;
}
