// SPDX-License-Identifier: Apache-2.0
// One node: whether it is there, whether it is well, what it can and cannot do, what it lost.

import type { ComponentChildren } from "preact";
import type { Capability, Node } from "../api/answers";
import * as format from "../format";
import { addUp, isNameless } from "../profile/losses";
import { formatQuery } from "../query/matchers";
import { useStore } from "../state/store";

export function NodeCard({ node: n, alone }: { node: Node; alone: boolean }) {
  const store = useStore();
  const { open } = store.state.value;
  const shown = alone || open === n.name;
  const { lost, nameless } = addUp(n.losses);
  const missing = n.capabilities.filter((c) => !c.available).length;
  return (
    <li class="node" data-node={n.name}>
      <div class="node-head">
        <span
          class={n.connected ? "dot on" : "dot"}
          title={n.connected ? "connected" : "not connected"}
        />
        <button
          type="button"
          class="link node-name"
          aria-expanded={shown}
          onClick={() => store.patch({ open: shown ? "" : n.name })}
        >
          {n.name}
        </button>
        <span class="faint">
          {n.connected ? "connected" : "not connected"}, heard of{" "}
          {format.ago(Date.parse(n.lastHeartbeat))}
        </span>
        <span
          class={`state ${n.health.status === "ok" ? "good" : n.health.status === "degraded" ? "bad" : "quiet"}`}
        >
          {n.health.status}
        </span>
        {n.health.message && <span>{n.health.message}</span>}
        {lost > 0 && <span class="loss">{format.whole(lost)} lost</span>}
        {nameless > 0 && <span class="faint">{format.whole(nameless)} without names</span>}
        {missing > 0 && !shown && <span class="faint">{missing} capabilities missing</span>}
        <span class="stretch" />
        <button
          type="button"
          onClick={() =>
            store.patch({
              view: "profile",
              query: formatQuery([{ name: "node", op: "=", value: n.name }]),
              capture: "",
              zoom: "",
            })
          }
        >
          profile
        </button>
      </div>
      {shown && <Details node={n} />}
    </li>
  );
}

function Details({ node: n }: { node: Node }) {
  const { health: h } = n;
  const samples = h.samples || Number.NaN;
  return (
    <div class="node-details">
      <Facts
        title="agent"
        rows={[
          ["version", n.agentVersion || "–"],
          ["server", n.server || "–"],
          ["memory", h.rssBytes ? format.bytes(h.rssBytes) : "–"],
          ["CPU used", h.cpuSeconds ? format.nanoseconds(h.cpuSeconds * 1e9) : "–"],
          ["samples", h.samples ? format.whole(h.samples) : "–"],
          [
            "CPU a sample",
            Number.isFinite(samples) ? format.nanoseconds((1e9 * h.cpuSeconds) / samples) : "–",
          ],
          [
            "spooled",
            h.spooledBatches ? `${format.bytes(h.spooledBytes)} in ${h.spooledBatches}` : "nothing",
          ],
        ]}
      />
      <Facts
        title="host"
        rows={[
          ...n.host.map(fact),
          ["boot", n.bootId || "–"],
          ["first seen", format.clock(Date.parse(n.firstSeen))],
          ...n.devices.map((d): [string, string] => [d.kind, `${d.model} ${d.id}`.trim()]),
        ]}
      />
      <section>
        <h3>losses</h3>
        {n.losses.length === 0 && <p class="faint">none</p>}
        <table class="facts">
          <tbody>
            {n.losses.map((l) => (
              <tr key={l.place} class={l.count > 0 && !isNameless(l.place) ? "loss" : ""}>
                <th>{l.place}</th>
                <td class="num">
                  {format.whole(l.count)}
                  {isNameless(l.place) && " without names"}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <section class="capabilities">
        <h3>capabilities</h3>
        <Capabilities all={n.capabilities} />
      </section>
    </div>
  );
}

/** What is missing with its reason, a line each; what is there in one paragraph. */
function Capabilities({ all }: { all: Capability[] }) {
  const missing = all.filter((c) => !c.available);
  const there = all.filter((c) => c.available);
  if (all.length === 0) return <p class="faint">none told</p>;
  return (
    <>
      {missing.length > 0 && (
        <table class="facts">
          <tbody>
            {missing.map((c) => (
              <tr key={c.name}>
                <th class="no">{c.name}</th>
                <td>{c.reason || "missing, for no reason told"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {there.length > 0 && (
        <p class="there">
          <span class="yes">{missing.length > 0 ? "there" : "all there"}</span>{" "}
          {there.map((c, i) => (
            <span key={c.name} title={c.reason}>
              {c.name}
              {i < there.length - 1 && ", "}
            </span>
          ))}
        </p>
      )}
    </>
  );
}

/** A fact of the host as a person reads it: "memory_bytes": "1024" is memory, 1 KiB. */
function fact([name, value]: [string, string]): [string, string] {
  const label = name.replace(/_bytes$/, "").replaceAll("_", " ");
  const isBytes = name.endsWith("_bytes") && /^\d+$/.test(value);
  return [label, isBytes ? format.bytes(Number(value)) : value];
}

function Facts({ title, rows }: { title: string; rows: [string, ComponentChildren][] }) {
  return (
    <section>
      <h3>{title}</h3>
      <table class="facts">
        <tbody>
          {rows.map(([name, value]) => (
            <tr key={name}>
              <th>{name}</th>
              <td>{value}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
