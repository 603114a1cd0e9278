// SPDX-License-Identifier: Apache-2.0
import { useStore } from "../state/store";

/** Says that a capture's samples are shown and not the always-on profile's. */
export function CaptureBar() {
  const store = useStore();
  const { capture } = store.state.value;
  if (!capture) return null;
  return (
    <div class="capture-bar">
      The samples of capture{" "}
      <button
        type="button"
        class="link mono"
        onClick={() => store.patch({ view: "captures", open: capture })}
      >
        {capture}
      </button>{" "}
      alone.
      <button type="button" class="small" onClick={() => store.patch({ capture: "", zoom: "" })}>
        show the always-on profile
      </button>
    </div>
  );
}
