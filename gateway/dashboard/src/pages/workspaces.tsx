// The workspaces, by name.
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { getPages } from "../model/api";
import { count, shortId } from "../model/format";
import type { WireWorkspaces } from "../model/wire";
import { workspace as parseWorkspace, type Workspace } from "../model/workspace";
import { deploymentLink, workspaceLink, WorkspaceBadge } from "../parts/deployed";
import { usePages } from "../parts/hooks";
import { Card, Empty, nodeLink, ShowMore, Time } from "../parts/small";
import { PollBadge, PollNotice } from "../parts/stale";

const pollInterval = 5000; // milliseconds
const page = 200;

export function WorkspacesPage(): JSX.Element {
  const { shown, lastUpdate, problem, now, showMore } = usePages("workspaces", pollInterval, (pages, signal) =>
    getPages("/api/v1/workspaces", page, pages, (each: WireWorkspaces) => (each.workspaces ?? []).map(parseWorkspace), signal),
  );
  useEffect(() => {
    document.title = "Workspaces · Muster";
  }, []);
  return (
    <>
      <header class="page-head">
        <div class="page-title">
          <h1>Workspaces</h1>
          <PollBadge lastUpdate={lastUpdate} />
        </div>
        <p class="sub">Folders that deployments keep between their runs. One deployment at a time has a workspace.</p>
      </header>
      <PollNotice problem={problem} lastUpdate={lastUpdate} />
      {!shown && !problem && <Empty>Loading workspaces.</Empty>}
      {shown && (
        <Card title="By name" id="workspaces">
          {shown.items.length === 0 && (
            <Empty>
              There is no workspace yet. The first deployment with one creates it: <code>muster deploy TEMPLATE --node NODE --workspace NAME</code>
            </Empty>
          )}
          {shown.items.length > 0 && <WorkspaceTable workspaces={shown.items} now={now} />}
          {shown.more && <ShowMore onShow={showMore} />}
        </Card>
      )}
    </>
  );
}

function WorkspaceTable({ workspaces, now }: { workspaces: Workspace[]; now: number }): JSX.Element {
  return (
    <table class="rows">
      <thead>
        <tr>
          <th scope="col">Workspace</th>
          <th scope="col">State</th>
          <th scope="col">Version</th>
          <th scope="col">Deployment that has it</th>
          <th scope="col">Since</th>
        </tr>
      </thead>
      <tbody>
        {workspaces.map((each) => (
          <WorkspaceRow key={each.name} workspace={each} now={now} />
        ))}
      </tbody>
    </table>
  );
}

function WorkspaceRow({ workspace: { name, state, latest, deployment, node, since, problem }, now }: { workspace: Workspace; now: number }): JSX.Element {
  return (
    <tr data-workspace={name}>
      <td data-label="Workspace">
        <a href={workspaceLink(name)}>{name}</a>
      </td>
      <td data-label="State">
        <WorkspaceBadge state={state} />
        {problem && <div class="bad-text">{problem}</div>}
      </td>
      <td data-label="Version">{latest > 0 ? count(latest) : <span class="muted">none yet</span>}</td>
      <td data-label="Deployment">
        {deployment ? (
          <div>
            <a class="mono" href={deploymentLink(deployment)} title={deployment}>
              {shortId(deployment)}
            </a>{" "}
            on <a href={nodeLink(node)}>{node}</a>
          </div>
        ) : (
          <span class="muted">none</span>
        )}
      </td>
      <td data-label="Since">{since > 0 && <Time at={since} now={now} />}</td>
    </tr>
  );
}
