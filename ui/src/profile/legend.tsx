// SPDX-License-Identifier: Apache-2.0
// Which colour is which module, with what runs in each.

import { useMemo } from "preact/hooks";
import type { Tree } from "../flame/tree";
import * as format from "../format";
import { useStore } from "../state/store";
import { Swatch } from "./swatch";

const MOST = 10;

export function Legend({ tree }: { tree: Tree }) {
  const store = useStore();
  const { search } = store.state.value;
  const modules = useMemo(() => selfByModule(tree), [tree]);
  return (
    <div class="modules" role="group" aria-label="modules by self value">
      {modules.slice(0, MOST).map(([module, realm, self]) => {
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

function selfByModule(tree: Tree): [module: string, realm: string, self: number][] {
  const sums = new Map<string, [string, string, number]>();
  for (let i = 1; i < tree.size; i++) {
    const f = tree.functions[tree.fn[i]];
    if (!f || tree.self[i] === 0) continue;
    const key = `${f.module}\0${f.realm}`;
    const sum = sums.get(key);
    if (sum) sum[2] += tree.self[i];
    else sums.set(key, [f.module, f.realm, tree.self[i]]);
  }
  return [...sums.values()].sort((a, b) => b[2] - a[2]);
}
