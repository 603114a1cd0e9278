// SPDX-License-Identifier: Apache-2.0
// What stands where there is nothing to show: why, and what to do.

import type { ComponentChildren } from "preact";
import { UnreachableError } from "../api/client";

export function Notice({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="notice">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** An error in its own words, with a way to try again. */
export function Failure({ error, retry }: { error: Error; retry?: () => void }) {
  const away = error instanceof UnreachableError;
  return (
    <div class="failure" role="alert">
      <b>{away ? "The server cannot be reached" : "The server answered with an error"}</b>
      <code>{error.message}</code>
      {retry && (
        <button type="button" onClick={retry}>
          try again
        </button>
      )}
    </div>
  );
}
