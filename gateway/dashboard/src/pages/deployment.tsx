// One deployment: its outcome on each node, its parameters, its outputs and its output.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { getJSON, path } from "../model/api";
import { deployment as parseDeployment, hasEnded, nounOf, problemTitle, subjectOf, type DeployedNode, type Deployment } from "../model/deployment";
import { bytes, count, nameOf, plural, shortId } from "../model/format";
import { outcomeCounts } from "../model/outcomes";
import { number } from "../model/parse";
import type { WireDeployment, WireJob } from "../model/wire";
import { CommandLine } from "../parts/command";
import { DeploymentBadge, deploymentLink, OutcomeIcon, OutcomeList, useFirst, Value } from "../parts/deployed";
import { DeploymentFacts } from "../parts/deployment_facts";
import { usePoll, useSeconds } from "../parts/hooks";
import { LogCard } from "../parts/job_log";
import { Card, Empty, nodeLink, Notice, Prose, Time } from "../parts/small";
import { PollBadge, PollNotice, sentence } from "../parts/stale";

const pollInterval = 2000; // milliseconds
const longPollInterval = 15_000; // for many nodes, and after the end: a late report may replace an outcome
const page = 500; // nodes
const manyNodes = 100;
const shownRows = 100;
const largeLog = 16 << 20; // bytes that are loaded without a request of the reader

interface Loaded {
  deployment: Deployment;
  /** Null: the root relay does not know the job. */
  job: WireJob | null;
}

async function load(id: string, token: string, signal: AbortSignal): Promise<Loaded> {
  const query = new URLSearchParams({ page_size: String(page), ...(token && { page_token: token }) });
  const deployment = parseDeployment(await getJSON<WireDeployment>(path`/deployments/${id}` + `?${query}`, signal));
  if (deployment.state === "pending") return { deployment, job: null };
  return { deployment, job: await getJSON<WireJob>(path`/jobs/${deployment.job}`, signal).catch(() => null) };
}

export function DeploymentPage({ id }: { id: string }): JSX.Element {
  const [tokens, setTokens] = useState([""]); // of the pages of nodes up to the shown one
  const [slow, setSlow] = useState(false);
  const [logNode, setLogNode] = useState("");
  const [follows, setFollows] = useState<boolean | null>(null); // null: it has no job yet
  const [unreachable, setUnreachable] = useState<string[]>([]);
  const token = tokens.at(-1)!;
  const { value, lastUpdate, problem } = usePoll(`deployment/${id}/${token}`, slow ? longPollInterval : pollInterval, (signal) => load(id, token, signal));
  const [last, setLast] = useState(value);
  useSeconds();
  useEffect(() => {
    if (!value) return;
    setLast(value);
    if (follows === null && value.deployment.state !== "pending") setFollows(number(value.job?.outputBytes) <= largeLog);
    setSlow(hasEnded(value.deployment.state) || value.deployment.targets > manyNodes);
  }, [value]);
  const openLog = (node: string) => {
    setLogNode(node);
    setFollows(true);
  };
  const shown = value ?? last;
  const title = shown ? subjectOf(shown.deployment) : id;
  useEffect(() => {
    document.title = shown ? `${shown.deployment.state} · ${title} · Muster` : `${id} · Muster`;
  }, [id, title, shown?.deployment.state]);
  const now = problem && lastUpdate ? lastUpdate : Date.now();
  return (
    <>
      <header class="page-head">
        <nav class="crumbs" aria-label="You are here">
          <a href="#/deployments">Deployments</a> <span aria-hidden="true">/</span> <span class="mono">{id}</span>
        </nav>
        <div class="page-title">
          <h1>{title}</h1>
          {shown && <DeploymentBadge state={shown.deployment.state} cancelling={false} />}
          <PollBadge lastUpdate={lastUpdate} />
        </div>
      </header>
      <PollNotice problem={problem} lastUpdate={lastUpdate} />
      {!shown && !problem && <Empty>Loading the deployment.</Empty>}
      {shown && (
        <>
          <Warnings deployment={shown.deployment} unreachable={unreachable} />
          <DeploymentFacts deployment={shown.deployment} now={now} />
          <div class={problem ? "is-stale" : ""}>
            <Nodes {...shown} now={now} tokens={tokens} setTokens={setTokens} onLog={openLog} />
            {!shown.deployment.build && <Outputs nodes={shown.deployment.nodes} ended={hasEnded(shown.deployment.state)} />}
          </div>
          {follows === false && <LargeLog size={number(shown.job?.outputBytes)} onLoad={() => setFollows(true)} />}
          {follows && (
            <LogCard
              key={shown.deployment.late} // a late outcome brings the rest of the output
              deployment={id}
              job={shown.deployment.job}
              node={logNode}
              single={shown.deployment.targets === 1}
              onAll={() => setLogNode("")}
              onUnreachable={setUnreachable}
            />
          )}
          {!shown.deployment.build && <Parameters deployment={shown.deployment} />}
          {shown.deployment.secrets.length > 0 && <Secrets deployment={shown.deployment} />}
          {shown.deployment.files.length > 0 && <Files deployment={shown.deployment} />}
          {!hasEnded(shown.deployment.state) && !shown.deployment.cancelRequestedBy && (
            <Card title="Cancel" id="cancel">
              <CommandLine command={`muster deployment cancel ${shown.deployment.id}`} label={`Command that cancels the ${nounOf(shown.deployment)}`} />
            </Card>
          )}
        </>
      )}
    </>
  );
}

function Warnings({ deployment, unreachable }: { deployment: Deployment; unreachable: string[] }): JSX.Element {
  const { state, problem, cancelRequestedBy } = deployment;
  const ended = hasEnded(state);
  const noun = nounOf(deployment);
  return (
    <>
      {problem && (
        <Notice tone={state === "failed" ? "bad" : "warn"} title={problemTitle(state, noun)}>
          {sentence(problem)}
        </Notice>
      )}
      {cancelRequestedBy && !ended && (
        <Notice tone="warn" title={`The ${noun} is to be cancelled`}>
          {nameOf(cancelRequestedBy)} has cancelled it. Its state changes as soon as the root relay answers and the nodes have reported.
        </Notice>
      )}
      {!ended && unreachable.length > 0 && (
        <Notice tone="warn" title="The root relay does not reach all nodes">
          {unreachable.join("\n")}
        </Notice>
      )}
    </>
  );
}

interface NodesProps extends Loaded {
  now: number;
  tokens: string[];
  setTokens: (tokens: string[]) => void;
  onLog: (node: string) => void;
}

function Nodes({ deployment, job, now, tokens, setTokens, onLog }: NodesProps): JSX.Element {
  const { nodes, targets, next } = deployment;
  const [rows, foot] = useFirst(nodes, shownRows, "nodes");
  const first = (tokens.length - 1) * page;
  const silent = next === "" ? Math.max(targets - first - nodes.length, 0) : 0;
  const paged = next !== "" || tokens.length > 1;
  const log = (node: string) => {
    onLog(node);
    document.getElementById("log")?.scrollIntoView();
  };
  return (
    <Card title="Nodes" id="nodes" aside={job && <OutcomeList counts={outcomeCounts(job)} targets={targets} />}>
      {rows.length > 0 && (
        <table class="rows">
          <thead>
            <tr>
              <th scope="col">Node</th>
              <th scope="col">Outcome</th>
              <th scope="col">Started</th>
              <th scope="col">Reason and next step</th>
              {targets > 1 && <th scope="col">Log</th>}
            </tr>
          </thead>
          <tbody>
            {rows.map((node) => (
              <NodeRow key={node.node} node={node} now={now} onLog={targets > 1 ? log : null} />
            ))}
          </tbody>
        </table>
      )}
      {silent > 0 && <Empty>{silentText(deployment, silent)}</Empty>}
      {foot}
      {paged && (
        <div class="rows-foot">
          <button type="button" disabled={tokens.length === 1} onClick={() => setTokens(tokens.slice(0, -1))}>
            Previous
          </button>
          <button type="button" disabled={next === ""} onClick={() => setTokens([...tokens, next])}>
            Next
          </button>
          <span class="muted">
            Nodes {count(first + 1)} to {count(first + nodes.length)} by name; the failed ones of these first.
          </span>
        </div>
      )}
    </Card>
  );
}

function silentText({ state, targets }: Deployment, silent: number): string {
  const nodes = `${count(silent)} of ${plural(targets, "node")}`;
  return hasEnded(state) ? `There is no record of ${nodes}.` : `Nothing was received yet from ${nodes}.`;
}

function NodeRow({ node, now, onLog }: { node: DeployedNode; now: number; onLog: ((node: string) => void) | null }): JSX.Element {
  const { earlier, retriedBy, destroyedBy } = node;
  const { kind, word, reason, next } = node.outcome;
  return (
    <tr data-node={node.node} data-outcome={kind}>
      <td data-label="Node">
        <a href={nodeLink(node.node)}>{node.node}</a>
      </td>
      <td data-label="Outcome">
        <span class="kind-badge">
          <OutcomeIcon kind={kind} />
          {word}
        </span>
        {earlier && <div class="muted">reported late; before: {earlier}</div>}
      </td>
      <td data-label="Started">{node.started > 0 ? <Time at={node.started} now={now} /> : <span class="muted">not started</span>}</td>
      <td class="detail" data-label="Reason">
        {reason}
        {next && <div class="next">Next: <Prose text={next} /></div>}
        <Successor word="Retried by" id={retriedBy} />
        <Successor word="Destroyed by" id={destroyedBy} />
        {kind === "succeeded" && !node.verified && <div class="bad-text">The output is not what the node signed.</div>}
      </td>
      {onLog && (
        <td data-label="Log">
          <button type="button" class="plain" onClick={() => onLog(node.node)} aria-label={`Show the log of ${node.node}`}>
            Show
          </button>
        </td>
      )}
    </tr>
  );
}

function Successor({ word, id }: { word: string; id: string }): JSX.Element | null {
  if (!id) return null;
  return (
    <div class="muted">
      {word}{" "}
      <a class="mono" href={deploymentLink(id)} title={id}>
        {shortId(id)}
      </a>
    </div>
  );
}

function LargeLog({ size, onLoad }: { size: number; onLoad: () => void }): JSX.Element {
  return (
    <Card title="Log" id="log">
      <button type="button" onClick={onLoad}>
        Load {bytes(size)}
      </button>
    </Card>
  );
}

function Outputs({ nodes, ended }: { nodes: DeployedNode[]; ended: boolean }): JSX.Element {
  const all = nodes.flatMap(({ node, outputs }) => outputs.map((output) => ({ node, ...output })));
  const [rows, foot] = useFirst(all, shownRows, "outputs");
  return (
    <Card title="Outputs" id="outputs">
      {all.length === 0 && <Empty>{ended ? "There are no outputs." : "There are no outputs yet."}</Empty>}
      {rows.length > 0 && (
        <table class="rows">
          <thead>
            <tr>
              <th scope="col">Node</th>
              <th scope="col">Output</th>
              <th scope="col">Value</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ node, name, value }) => (
              <tr key={`${node}/${name}`} data-output={name}>
                <td data-label="Node">{node}</td>
                <td data-label="Output">{name}</td>
                <td data-label="Value">
                  <Value json={value} sensitive={value === ""} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {foot}
    </Card>
  );
}

function Parameters({ deployment: { parameters } }: { deployment: Deployment }): JSX.Element {
  const [rows, foot] = useFirst(parameters, shownRows, "parameters");
  return (
    <Card title="Parameters" id="parameters">
      {parameters.length === 0 && <Empty>No parameter has a value.</Empty>}
      {rows.length > 0 && (
        <table class="rows">
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Value</th>
              <th scope="col">Set by</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ name, value, sensitive, source }) => (
              <tr key={name} data-parameter={name}>
                <td data-label="Name">{name}</td>
                <td data-label="Value">
                  <Value json={value} sensitive={sensitive} />
                </td>
                <td data-label="Set by">{source}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {foot}
    </Card>
  );
}

function Secrets({ deployment: { secrets } }: { deployment: Deployment }): JSX.Element {
  return (
    <Card title="Secrets" id="secrets" aside={<span class="muted">No value is shown.</span>}>
      <table class="rows">
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Secret</th>
            <th scope="col">Version</th>
          </tr>
        </thead>
        <tbody>
          {secrets.map(({ name, secret, version }) => (
            <tr key={name} data-secret={name}>
              <td data-label="Name">{name}</td>
              <td data-label="Secret">{secret}</td>
              <td data-label="Version">{version}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}

function Files({ deployment: { files } }: { deployment: Deployment }): JSX.Element {
  const [rows, foot] = useFirst(files, shownRows, "files");
  return (
    <Card title="Files" id="files">
      <table class="rows">
        <thead>
          <tr>
            <th scope="col">Path</th>
            <th scope="col">Size</th>
            <th scope="col">SHA-256</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ path, size, sha256 }) => (
            <tr key={path}>
              <td data-label="Path">{path}</td>
              <td data-label="Size">{bytes(size)}</td>
              <td data-label="SHA-256">
                <code>{sha256}</code>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {foot}
    </Card>
  );
}
