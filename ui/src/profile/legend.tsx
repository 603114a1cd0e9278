// SPDX-License-Identifier: Apache-2.0
// Which colour is which module, with what runs in each.

import { useMemo } from "preact/hooks";
import * as format from "../format";
import { useStore } from "../state/store";
import { selfByModule } from "../table/rows";
import type { Profile } from "./load";
import { Swatch } from "./swatch";

const MOST = 10;

/** Of one selection, not of a diff: its rows are exact also where the graph is cut. */
export function Legend({ profile }: { profile: Profile }) {
  const store = useStore();
  const { search } = store.state.value;
  const { tree, rows } = profile;
  const modules = useMemo(() => selfByModule(rows), [rows]);
  return (
    <div class="modules" role="group" aria-label="modules by self value">
      {modules.slice(0, MOST).map(({ module, realm, self }) => {
        const wanted = `module:${module}`;
        const on = search === wanted;
        return (
          <button
            type="button"
            class="link"
            key={`${module} ${realm}`}
            aria-pressed={on}
            title={`${format.value(self, tree.unit)} in ${module || "no module"}: click to mark its frames`}
            onClick={() => store.patch({ search: on ? "" : wanted })}
          >
            <Swatch module={module} realm={realm} />
            {module || "[unknown]"}{" "}
            <span class="faint num">{format.percent(self, tree.total)}</span>
          </button>
        );
      })}
      {modules.length > MOST && <span class="faint">and {modules.length - MOST} more</span>}
    </div>
  );
}
