// The nodes and relays that have joined, and other names that a run plans or that have sent heartbeats.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { getJSON, Problem } from "../model/api";
import type { Attachment } from "../model/attachment";
import { count, duration, skew } from "../model/format";
import { presenceOf } from "../model/kinds";
import type { Node } from "../model/parse";
import { hasDuplicate, hasHeartbeats, members, readsAll, type Choice, type Known, type Member } from "../model/register";
import { usePages, useSeconds } from "../parts/hooks";
import { Card, Empty, nodeLink, PresenceBadge, ShowMore, Time } from "../parts/small";
import { PollBadge, PollNotice } from "../parts/stale";

export const duplicateAgent = "Two processes use one identity";

const notJoined = "Not joined";

const pollInterval = 5000; // milliseconds
const longPollInterval = 60_000; // for choices that may read the lists as a whole
const page = 200;
const choices: readonly Choice[] = ["", "ATTACHED", "NOT_ATTACHED", "ONLINE", "LATE", "SUSPECT", "LOST", "OFFLINE", "UNKNOWN", "NONE", "NOT_JOINED"];

export function NodesPage(): JSX.Element {
  const [choice, setChoice] = useState<Choice>("");
  const known = useRef<Known>(new Map());
  const { shown, lastUpdate, problem, now, showMore, restart } = usePages(`nodes/${choice}`, readsAll(choice) ? longPollInterval : pollInterval, (pages, signal) =>
    members(choice, pages * page, (path) => getJSON(path, signal), Date.now(), known.current),
  );
  useSeconds();
  useEffect(() => {
    document.title = "Nodes · Muster";
  }, []);
  const choose = (next: Choice) => {
    setChoice(next);
    restart();
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
        <div class="choices" role="group" aria-label="Attachment and presence">
          {choices.map((each) => (
            <button key={each} type="button" data-choice={each} aria-pressed={choice === each} onClick={() => choose(each)}>
              {labelOf(each)}
            </button>
          ))}
        </div>
        {!shown && !problem && <Empty>Loading nodes.</Empty>}
        {shown?.members.length === 0 && <Empty>No node matches.</Empty>}
        {shown && shown.members.length > 0 && <NodeTable members={shown.members} now={now} live={!problem} />}
        {shown?.more && (
          <ShowMore onShow={showMore}>
            <span class="muted">{count(shown.members.length)} shown.</span>
          </ShowMore>
        )}
      </Card>
    </>
  );
}

const labels: Partial<Record<Choice, string>> = { "": "All", ATTACHED: "Attached", NOT_ATTACHED: "Not attached", NOT_JOINED: notJoined };

function labelOf(choice: Choice): string {
  return labels[choice] ?? presenceOf(`PRESENCE_${choice}`).label;
}

function NodeTable({ members, now, live }: { members: Member[]; now: number; live: boolean }): JSX.Element {
  return (
    <table class="rows rows-nodes">
      <thead>
        <tr>
          <th scope="col">Node</th>
          <th scope="col">Attached to</th>
          <th scope="col">Presence</th>
          <th scope="col">Last heartbeat</th>
          <th scope="col">Remarks</th>
        </tr>
      </thead>
      <tbody>
        {members.map((member) => (
          <NodeRow key={member.node.node} member={member} now={now} live={live} />
        ))}
      </tbody>
    </table>
  );
}

function NodeRow({ member, now, live }: { member: Member; now: number; live: boolean }): JSX.Element {
  const { node, attachment } = member;
  return (
    <tr data-node={node.node}>
      <td data-label="Node">
        <a href={nodeLink(node.node)}>{node.node}</a>
      </td>
      <td data-label="Attached to">
        <AttachmentText attachment={attachment} now={now} />
      </td>
      <td data-label="Presence">
        <MemberPresence member={member} />
        {node.since > 0 && (
          <div class="muted">
            since <Time at={node.since} now={now} />
          </div>
        )}
      </td>
      <td data-label="Heartbeat">
        <LastHeartbeat node={node} now={now} live={live} />
      </td>
      <td data-label="Remarks">
        <Remarks member={member} />
      </td>
    </tr>
  );
}

/** The parent and since when, or that there is none. */
export function AttachmentText({ attachment, now }: { attachment: Attachment | Problem; now: number }): JSX.Element {
  if (attachment instanceof Problem) return <span class="muted" title={attachment.message}>not known</span>;
  const { attached, relay, since } = attachment;
  return (
    <div data-attached={String(attached)}>
      {attached && <b>{relay}</b>}
      <span class="muted">
        {attached ? " since " : relay ? `no, detached from ${relay} at ` : "no"}
        <Time at={since} now={now} />
      </span>
    </div>
  );
}

export function LastHeartbeat({ node, now, live }: { node: Node; now: number; live: boolean }): JSX.Element | null {
  if (!hasHeartbeats(node)) return null;
  if (!node.lastHeartbeat) return <span class="muted">none</span>;
  const silent = presenceOf(node.presence).silent && live;
  return (
    <>
      <Time at={node.lastHeartbeat} now={now} />
      {silent && <span class="muted"> ({duration((now - node.lastHeartbeat) / 1000)} ago)</span>}
    </>
  );
}

/** Shows the presence. A name without heartbeats that has not joined is not a node without heartbeats. */
export function MemberPresence({ member: { node, joined } }: { member: Member }): JSX.Element | null {
  if (hasHeartbeats(node)) return <PresenceBadge presence={node.presence} />;
  if (joined) return joined.relay ? null : <PresenceBadge presence={node.presence} />;
  return (
    <span class="presence presence-never" data-presence="not-joined">
      <span class="dot" aria-hidden="true" />
      {notJoined}
    </span>
  );
}

function Remarks({ member }: { member: Member }): JSX.Element {
  const { node, joined, attachment } = member;
  const off = node.clockSkew === null ? "" : skew(node.clockSkew);
  return (
    <>
      {!joined && hasHeartbeats(node) && <div>{notJoined}</div>}
      {joined?.relay && <div>Relay</div>}
      {joined?.revoked && <div class="bad-text">Revoked</div>}
      {hasDuplicate(member) && <div class="bad-text">{duplicateAgent}</div>}
      {!(attachment instanceof Problem) && attachment.link && <div title={attachment.link}>Through a tunnel</div>}
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
