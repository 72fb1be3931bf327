// All nodes that are planned by a run or have sent heartbeats.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { getJSON } from "../model/api";
import { count, duration, skew } from "../model/format";
import { node as parseNode, type Node } from "../model/parse";
import { presenceOf } from "../model/kinds";
import type { WireNode } from "../model/wire";
import { usePoll, useSeconds } from "../parts/hooks";
import { Card, Empty, nodeLink, PresenceBadge, Time } from "../parts/small";
import { PollBadge, PollNotice } from "../parts/stale";

export const duplicateAgent = "Two processes send heartbeats with one identity";

const pollInterval = 5000; // milliseconds
const page = 200;
const choices = ["", "ONLINE", "LATE", "SUSPECT", "LOST", "OFFLINE", "UNKNOWN"];

export function NodesPage(): JSX.Element {
  const [presence, setPresence] = useState("");
  const [pages, setPages] = useState(1);
  const { value, lastUpdate, problem } = usePoll(`nodes/${presence}/${pages}`, pollInterval, (signal) => load(presence, pages, signal));
  const [last, setLast] = useState(value);
  useSeconds();
  useEffect(() => {
    document.title = "Nodes · Muster";
  }, []);
  useEffect(() => {
    if (value) setLast(value);
  }, [value]);
  const shown = value ?? last;
  const now = problem && lastUpdate ? lastUpdate : Date.now();
  const choose = (next: string) => {
    setPresence(next);
    setPages(1);
  };
  return (
    <>
      <header class="page-head">
        <div class="page-title">
          <h1>Nodes</h1>
          <PollBadge lastUpdate={lastUpdate} />
        </div>
      </header>
      <PollNotice problem={problem} lastUpdate={lastUpdate} />
      <Card title="By name" id="nodes" aside={<OpenNode />}>
        <div class="choices" role="group" aria-label="Presence">
          {choices.map((choice) => (
            <button key={choice} type="button" aria-pressed={presence === choice} onClick={() => choose(choice)}>
              {choice === "" ? "All" : presenceOf(`PRESENCE_${choice}`).label}
            </button>
          ))}
        </div>
        {!shown && !problem && <Empty>Loading nodes.</Empty>}
        {shown?.nodes.length === 0 && <Empty>No node matches.</Empty>}
        {shown && shown.nodes.length > 0 && <NodeTable nodes={shown.nodes} now={now} live={!problem} />}
        {shown?.more && (
          <div class="rows-foot">
            <button type="button" onClick={() => setPages(pages + 1)}>
              Show more
            </button>
            <span class="muted">{count(shown.nodes.length)} shown.</span>
          </div>
        )}
      </Card>
    </>
  );
}

async function load(presence: string, pages: number, signal: AbortSignal): Promise<{ nodes: Node[]; more: boolean }> {
  const nodes: Node[] = [];
  let token = "";
  for (let number = 0; number < pages; number++) {
    const query = new URLSearchParams({ page_size: String(page) });
    if (presence) query.set("presence", `PRESENCE_${presence}`);
    if (token) query.set("page_token", token);
    const answer = await getJSON<{ nodes?: WireNode[]; nextPageToken?: string }>(`/api/v1/nodes?${query}`, signal);
    nodes.push(...(answer.nodes ?? []).map((wire) => parseNode(wire, Date.now())));
    token = answer.nextPageToken ?? "";
    if (!token) break;
  }
  return { nodes, more: token !== "" };
}

function NodeTable({ nodes, now, live }: { nodes: Node[]; now: number; live: boolean }): JSX.Element {
  return (
    <table class="rows rows-nodes">
      <thead>
        <tr>
          <th scope="col">Node</th>
          <th scope="col">Presence</th>
          <th scope="col">Since</th>
          <th scope="col">Last heartbeat</th>
          <th scope="col">Remarks</th>
        </tr>
      </thead>
      <tbody>
        {nodes.map((node) => (
          <tr key={node.node} data-node={node.node}>
            <td data-label="Node">
              <a href={nodeLink(node.node)}>{node.node}</a>
            </td>
            <td data-label="Presence">
              <PresenceBadge presence={node.presence} />
            </td>
            <td data-label="Since">
              <Time at={node.since} now={now} />
            </td>
            <td data-label="Last heartbeat">
              <LastHeartbeat node={node} now={now} live={live} />
            </td>
            <td data-label="Remarks">
              <Remarks node={node} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function LastHeartbeat({ node, now, live }: { node: Node; now: number; live: boolean }): JSX.Element {
  if (!node.lastHeartbeat) return <span class="muted">none</span>;
  const silent = presenceOf(node.presence).silent && live;
  return (
    <>
      <Time at={node.lastHeartbeat} now={now} />
      {silent && <span class="muted"> ({duration((now - node.lastHeartbeat) / 1000)} ago)</span>}
    </>
  );
}

function Remarks({ node }: { node: Node }): JSX.Element {
  const off = node.clockSkew === null ? "" : skew(node.clockSkew);
  return (
    <>
      {node.duplicateAgent && <div class="bad-text">{duplicateAgent}</div>}
      {off && <div>Clock {off}</div>}
    </>
  );
}

function OpenNode(): JSX.Element {
  const open = (event: Event) => {
    event.preventDefault();
    const name = String(new FormData(event.currentTarget as HTMLFormElement).get("node") ?? "").trim();
    if (name) location.hash = nodeLink(name);
  };
  return (
    <form class="find" role="search" onSubmit={open}>
      <input name="node" type="search" placeholder="Open a node" aria-label="Open a node by its name" autocomplete="off" spellcheck={false} />
    </form>
  );
}
