// SPDX-License-Identifier: Apache-2.0
import { useLayoutEffect, useRef } from "preact/hooks";
import { SMALL } from "../api/profile";
import * as format from "../format";
import { framesIn } from "./layout";
import { ROOT, type Tree } from "./tree";
import type { Target } from "./view";

interface TooltipProps {
  tree: Tree;
  target: Target;
  x: number;
  y: number;
  seconds: number;
}

/** What a frame is, and how much. It stands beside the pointer and inside the window. */
export function Tooltip({ tree, target, x, y, seconds }: TooltipProps) {
  const ref = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const tip = ref.current;
    const around = tip?.offsetParent;
    if (!tip || !around) return;
    const r = around.getBoundingClientRect();
    const right = Math.min(r.width, innerWidth - r.left) - tip.offsetWidth - 4;
    const below = y + 18 + tip.offsetHeight + r.top < innerHeight;
    tip.style.left = `${Math.max(0, Math.min(x + 14, right))}px`;
    tip.style.top = `${below ? y + 18 : y - tip.offsetHeight - 10}px`;
  });

  const { node, last } = target;
  const many = last >= 0 || tree.fn[node] === SMALL;
  return (
    <div class="tooltip" ref={ref} role="tooltip">
      {many ? <Block {...{ tree, node, last }} /> : <Frame {...{ tree, node }} />}
      <Numbers {...{ tree, node, last, seconds }} />
    </div>
  );
}

function Frame({ tree, node }: { tree: Tree; node: number }) {
  if (tree.fn[node] === ROOT) return <b>all stacks</b>;
  const f = tree.functions[tree.fn[node]];
  return (
    <>
      <b class="tooltip-name">{f.name}</b>
      <div class="tooltip-where">
        {f.module && <span class="mono">{f.module}</span>}
        {f.realm !== "user" && <span>{f.realm}</span>}
        {f.file && <span class="mono">{f.file}</span>}
      </div>
    </>
  );
}

function Block({ tree, node, last }: { tree: Tree; node: number; last: number }) {
  if (last < 0 || (last === node && tree.fn[node] === SMALL)) {
    return (
      <>
        <b>small frames</b>
        <div class="tooltip-where">put together by the server: narrow the query to see them</div>
      </>
    );
  }
  return (
    <>
      <b>{format.whole(framesIn(tree, node, last))} small frames</b>
      <div class="tooltip-where">too narrow to draw here: click to see them</div>
    </>
  );
}

interface NumbersProps {
  tree: Tree;
  node: number;
  last: number;
  seconds: number;
}

function Numbers({ tree, node, last, seconds }: NumbersProps) {
  let [self, total, baseSelf, baseTotal] = [0, 0, 0, 0];
  for (let i = node; i <= Math.max(node, last); i = tree.end[i]) {
    self += tree.self[i];
    total += tree.value[i];
    baseSelf += tree.baseSelf ? tree.baseSelf[i] : 0;
    baseTotal += tree.baseValue ? tree.baseValue[i] : 0;
  }
  const rows: [string, number, number][] = [
    ["total", total, baseTotal],
    ["self", self, baseSelf],
  ];
  const diff = tree.baseValue !== null;
  return (
    <table class="tooltip-numbers">
      <tbody>
        {rows.map(([name, v, base]) => (
          <tr key={name}>
            <th>{name}</th>
            <td>{format.value(v, tree.unit)}</td>
            <td>{format.percent(v, tree.total)}</td>
            {diff ? (
              <>
                <td class="faint">was {format.percent(base, tree.baseTotal)}</td>
                <td>{format.points(v / (tree.total || 1) - base / (tree.baseTotal || 1))}</td>
              </>
            ) : (
              <td class="faint">{format.perRange(v, tree.unit, tree.type, seconds)}</td>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
