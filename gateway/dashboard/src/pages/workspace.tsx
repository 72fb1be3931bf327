// One workspace: which deployment has it, what to do about its state, and its versions.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { getJSON, path } from "../model/api";
import { bytes, clock, count, nameOf, plural, shortId } from "../model/format";
import type { WireWorkspace } from "../model/wire";
import { deleteCommand, nextStep, restorable, restoreCommand, workspace as parseWorkspace, type Workspace, type WorkspaceVersion } from "../model/workspace";
import { CommandLine } from "../parts/command";
import { deploymentLink, WorkspaceBadge } from "../parts/deployed";
import { usePoll } from "../parts/hooks";
import { Card, Empty, nodeLink, Notice, Time } from "../parts/small";
import { PollBadge, PollNotice, sentence } from "../parts/stale";

const pollInterval = 3000; // milliseconds

export function WorkspacePage({ name }: { name: string }): JSX.Element {
  const { value, lastUpdate, problem } = usePoll(`workspace/${name}`, pollInterval, async (signal) =>
    parseWorkspace(await getJSON<WireWorkspace>(path`/workspaces/${name}`, signal)),
  );
  useEffect(() => {
    document.title = `${name} · Muster`;
  }, [name]);
  const now = problem && lastUpdate ? lastUpdate : Date.now();
  const next = value && nextStep(value);
  return (
    <>
      <header class="page-head">
        <nav class="crumbs" aria-label="You are here">
          <a href="#/workspaces">Workspaces</a> <span aria-hidden="true">/</span> <span class="mono">{name}</span>
        </nav>
        <div class="page-title">
          <h1>{name}</h1>
          {value && <WorkspaceBadge state={value.state} />}
          <PollBadge lastUpdate={lastUpdate} />
        </div>
      </header>
      <PollNotice problem={problem} lastUpdate={lastUpdate} />
      {!value && !problem && <Empty>Loading the workspace.</Empty>}
      {value && (
        <>
          {next && (
            <Notice tone={value.state === "suspect" ? "bad" : value.state === "saving" ? "warn" : "info"} title={next.title}>
              {value.problem && `${sentence(value.problem)}\n`}
              {next.text}
            </Notice>
          )}
          <Facts workspace={value} now={now} />
          {next && (
            <Card title={next.action} id="next">
              <CommandLine command={next.command} label={`Command: ${next.action}`} />
            </Card>
          )}
          <Versions workspace={value} now={now} />
          <Restore workspace={value} now={now} />
          <Delete workspace={value} />
        </>
      )}
    </>
  );
}

function Facts({ workspace: { latest, deployment, node, since, versions, size }, now }: { workspace: Workspace; now: number }): JSX.Element {
  return (
    <section class="card" aria-label="Workspace">
      <dl class="facts">
        <div>
          <dt>Newest version</dt>
          <dd>{latest > 0 ? count(latest) : "none yet"}</dd>
        </div>
        <div>
          <dt>Stored</dt>
          <dd>
            {plural(versions.length, "version")}, {bytes(size)}
          </dd>
        </div>
        {deployment && (
          <>
            <div>
              <dt>Node</dt>
              <dd>
                <a href={nodeLink(node)}>{node}</a>
              </dd>
            </div>
            <div>
              <dt>Since</dt>
              <dd>
                <Time at={since} now={now} />
              </dd>
            </div>
            <div class="wide">
              <dt>Deployment that has it</dt>
              <dd>
                <a class="mono" href={deploymentLink(deployment)}>
                  {deployment}
                </a>
              </dd>
            </div>
          </>
        )}
      </dl>
    </section>
  );
}

function Versions({ workspace: { versions }, now }: { workspace: Workspace; now: number }): JSX.Element {
  return (
    <Card title="Versions" id="versions" aside={<span class="muted">The newest 10 are kept.</span>}>
      {versions.length === 0 && <Empty>Nothing was saved yet.</Empty>}
      {versions.length > 0 && (
        <table class="rows">
          <thead>
            <tr>
              <th scope="col">Version</th>
              <th scope="col">Saved</th>
              <th scope="col">Size</th>
              <th scope="col">SHA-256</th>
              <th scope="col">Node</th>
              <th scope="col">Deployment</th>
            </tr>
          </thead>
          <tbody>
            {versions.map((each) => (
              <VersionRow key={each.version} version={each} now={now} />
            ))}
          </tbody>
        </table>
      )}
    </Card>
  );
}

function VersionRow({ version: { version, sha256, size, deployment, node, created, omitted, restoredFrom, restoredBy }, now }: { version: WorkspaceVersion; now: number }): JSX.Element {
  return (
    <tr data-version={version}>
      <td data-label="Version">
        <div>
          <b>{count(version)}</b>
          {restoredFrom > 0 && (
            <div class="muted">
              version {count(restoredFrom)} again, by <span title={restoredBy}>{nameOf(restoredBy)}</span>
            </div>
          )}
          {omitted > 0 && (
            <div class="muted" title="Links and other entries that are neither files nor folders, or whose names cannot be kept">
              {count(omitted)} {omitted === 1 ? "entry was" : "entries were"} not saved
            </div>
          )}
        </div>
      </td>
      <td data-label="Saved">
        <Time at={created} now={now} />
      </td>
      <td data-label="Size">{bytes(size)}</td>
      <td data-label="SHA-256">
        <code title={sha256}>{shortId(sha256)}</code>
      </td>
      <td data-label="Node">{node && <a href={nodeLink(node)}>{node}</a>}</td>
      <td data-label="Deployment">
        {deployment && (
          <a class="mono" href={deploymentLink(deployment)} title={deployment}>
            {shortId(deployment)}
          </a>
        )}
      </td>
    </tr>
  );
}

// The command that makes an older version the newest one.
function Restore({ workspace, now }: { workspace: Workspace; now: number }): JSX.Element | null {
  const older = restorable(workspace);
  const [chosen, setChosen] = useState(0);
  if (older.length === 0) return null;
  // A version may have been removed since it was chosen.
  const version = older.some((each) => each.version === chosen) ? chosen : older[0]!.version;
  return (
    <Card title="Restore" id="restore">
      <div class="form">
        <div class="field">
          <label for="restored-version">Version</label>
          <select id="restored-version" value={String(version)} onChange={(event) => setChosen(Number(event.currentTarget.value))}>
            {older.map((each) => (
              <option key={each.version} value={String(each.version)}>
                {each.version}, of {clock(each.created, now)}
              </option>
            ))}
          </select>
          <div class="help muted">It becomes the newest one, under a new number.</div>
        </div>
      </div>
      <CommandLine command={restoreCommand(workspace.name, version)} label="Command that restores the version" />
    </Card>
  );
}

// The command that deletes the workspace.
function Delete({ workspace }: { workspace: Workspace }): JSX.Element | null {
  const command = deleteCommand(workspace);
  if (!command) return null;
  return (
    <Card title="Delete" id="delete">
      <p class="muted">
        All versions are removed, and this cannot be undone.
        {workspace.deployment && " The version that the deployment may have made is lost too."}
      </p>
      <CommandLine command={command} label="Command that deletes the workspace" />
    </Card>
  );
}
