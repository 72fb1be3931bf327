// One node or relay: its attachment, its presence, its pairs and its history.
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { getJSON, Problem } from "../model/api";
import { count, plural, skew } from "../model/format";
import { factsOf, isFinal } from "../model/kinds";
import type { Node, NodeEvent } from "../model/parse";
import { hasDuplicate, hasHeartbeats, member, type Member } from "../model/register";
import { sort } from "../model/rows";
import { keyOf } from "../model/run_model";
import { Conformance } from "../parts/conformance";
import { usePoll, useSeconds } from "../parts/hooks";
import { Equipment } from "../parts/node_info";
import { Heartbeat, pairLine } from "../parts/pair";
import { Card, Empty, KindBadge, PresenceBadge, Prose, runLink, Time } from "../parts/small";
import { PollBadge, PollNotice } from "../parts/stale";
import { AttachmentText, LastHeartbeat, MemberPresence, duplicateAgent } from "./nodes";

const pollInterval = 2000; // milliseconds

export function NodePage({ name }: { name: string }): JSX.Element {
  const { value, lastUpdate, problem } = usePoll(`node/${name}`, pollInterval, (signal) => member(name, (path) => getJSON(path, signal), Date.now()));
  useSeconds();
  useEffect(() => {
    document.title = `${name} · Muster`;
  }, [name]);
  const now = problem && lastUpdate ? lastUpdate : Date.now();
  return (
    <>
      <header class="page-head">
        <nav class="crumbs" aria-label="You are here">
          <a href="#/nodes">Nodes</a> <span aria-hidden="true">/</span> <span class="mono">{name}</span>
        </nav>
        <div class="page-title">
          <h1>{name}</h1>
          {value && <Attached member={value} />}
          {value && (hasHeartbeats(value.node) || !value.joined) && <MemberPresence member={value} />}
          <PollBadge lastUpdate={lastUpdate} />
        </div>
      </header>
      <PollNotice problem={problem} lastUpdate={lastUpdate} />
      {!value && !problem && <Empty>Loading {name}.</Empty>}
      {value && (
        <div class={problem ? "is-stale" : ""}>
          <Presence member={value} now={now} live={!problem} />
          {(!isRelay(value) || value.node.pairs.length > 0) && <Pairs node={value.node} now={now} live={!problem} />}
          <Equipment attachment={value.attachment} now={now} />
          {!isRelay(value) && <Conformance node={name} runs={value.joined !== null && !value.joined.revoked} now={now} />}
          {(!isRelay(value) || value.node.events.length > 0) && <History events={value.node.events} now={now} />}
        </div>
      )}
    </>
  );
}

// Nothing for a name that has not joined: it cannot be attached.
function Attached({ member: { joined, attachment } }: { member: Member }): JSX.Element | null {
  if (!joined) return null;
  return (
    <>
      {joined.relay && <span class="tag">relay</span>}
      {!(attachment instanceof Problem) && (
        <span class={`presence presence-${attachment.attached ? "online" : "never"}`}>
          <span class="dot" aria-hidden="true" />
          {attachment.attached ? "Attached" : "Not attached"}
        </span>
      )}
    </>
  );
}

// A relay runs no containers and sends no heartbeats.
function isRelay({ joined }: Member): boolean {
  return joined?.relay ?? false;
}

function Presence({ member, now, live }: { member: Member; now: number; live: boolean }): JSX.Element {
  const { node, joined, attachment } = member;
  const known = attachment instanceof Problem ? null : attachment;
  return (
    <section class="card" aria-label="Attachment and presence">
      <dl class="facts">
        <div data-fact="attached">
          <dt>Attached to</dt>
          <dd>
            {attachment instanceof Problem ? <span class="bad-text">Not known: {attachment.message}.</span> : <AttachmentText attachment={attachment} now={now} />}
          </dd>
        </div>
        {known?.attached && (
          <div data-fact="link">
            <dt>Link</dt>
            <dd>{known.link || "direct"}</dd>
          </div>
        )}
        {isRelay(member) && known && (
          <div data-fact="descendants">
            <dt>Attached descendants</dt>
            <dd>{count(known.descendants)}</dd>
          </div>
        )}
        <div>
          <dt>{joined?.relay ? "Joined as a relay" : "Joined"}</dt>
          <dd>
            {joined ? <Time at={joined.at} now={now} /> : <span class="muted">no</span>}
            {joined?.revoked && <span class="bad-text"> revoked</span>}
          </dd>
        </div>
        {(hasHeartbeats(node) || !isRelay(member)) && <Heartbeats member={member} now={now} live={live} />}
      </dl>
      {hasDuplicate(member) && <p class="bad-text">{duplicateAgent}</p>}
    </section>
  );
}

function Heartbeats({ member, now, live }: { member: Member; now: number; live: boolean }): JSX.Element {
  const { node } = member;
  return (
    <>
      <div>
        <dt>Presence</dt>
        <dd>
          <MemberPresence member={member} />
          {!hasHeartbeats(node) && <div class="muted">A node sends them while it works for a run.</div>}
          {node.since > 0 && (
            <span class="muted">
              {" "}
              since <Time at={node.since} now={now} />
            </span>
          )}
        </dd>
      </div>
      {hasHeartbeats(node) && (
        <div>
          <dt>Last heartbeat</dt>
          <dd>
            <LastHeartbeat node={node} now={now} live={live} />
          </dd>
        </div>
      )}
      {node.clockSkew !== null && (
        <div>
          <dt>Clock</dt>
          <dd>
            <ClockText node={node} />
          </dd>
        </div>
      )}
    </>
  );
}

function ClockText({ node }: { node: Node }): JSX.Element {
  return <>{skew(node.clockSkew!) || "in sync"}</>;
}

function Pairs({ node, now, live }: { node: Node; now: number; live: boolean }): JSX.Element {
  const pairs = sort(node.pairs, "reason", false);
  return (
    <Card title="Pairs of runs that have not ended" id="node-pairs" aside={<span class="muted">{plural(pairs.length, "pair")}</span>}>
      {pairs.length === 0 && <Empty>No run that has not ended plans this node.</Empty>}
      {pairs.length > 0 && (
        <table class="rows">
          <thead>
            <tr>
              <th scope="col">Run</th>
              <th scope="col">Plugin</th>
              <th scope="col">State</th>
              <th scope="col">Last heartbeat</th>
              <th scope="col">Detail and next step</th>
            </tr>
          </thead>
          <tbody>
            {pairs.map((pair, index) => (
              <tr key={`${keyOf(pair.plugin, pair.node)}/${index}`} data-plugin={pair.plugin} data-kind={pair.kind}>
                <td data-label="Run">
                  <a class="mono" href={runLink(pair.run)}>
                    {pair.run}
                  </a>
                </td>
                <td data-label="Plugin">{pair.plugin}</td>
                <td data-label="State">
                  <KindBadge kind={pair.kind} />
                </td>
                <td data-label="Last heartbeat">
                  {!isFinal(pair.kind) && <Heartbeat pair={pair} now={now} stale={!live} offset={0} />}
                </td>
                <td class="detail" data-label="Detail">
                  {pairLine(pair, now)}
                  {pair.next && <div class="next">Next: <Prose text={pair.next} /></div>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Card>
  );
}

function History({ events, now }: { events: NodeEvent[]; now: number }): JSX.Element {
  return (
    <Card title="History" id="history" aside={<span class="muted">newest first, 30 days</span>}>
      {events.length === 0 && <Empty>No events are recorded.</Empty>}
      <ol class="events">
        {events.map((event, index) => (
          <li key={index}>
            <Time at={event.time} now={now} />
            <span class="mark" />
            <span class="what">
              {event.presence && event.presence !== "PRESENCE_UNSPECIFIED" && <PresenceBadge presence={event.presence} />}
              {event.kind && factsOf(event.kind) && <KindBadge kind={event.kind} />}
              {event.plugin && <span class="muted"> {event.plugin}</span>}
              {event.run && <> <a class="mono" href={runLink(event.run)}>{event.run}</a></>}
              {event.detail && <span class="detail"> {event.detail}</span>}
            </span>
          </li>
        ))}
      </ol>
    </Card>
  );
}
