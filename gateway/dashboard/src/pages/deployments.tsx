// All deployments, the newest first.
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { getPages } from "../model/api";
import { deployment as parseDeployment, hasEnded, subjectOf, type Deployment } from "../model/deployment";
import { DeploymentCounts } from "../model/deployment_counts";
import { duration, nameOf, shortId } from "../model/format";
import type { OutcomeCount } from "../model/outcomes";
import type { WireDeployment } from "../model/wire";
import { DeploymentBadge, deploymentLink, OutcomeList } from "../parts/deployed";
import { usePages, useSeconds } from "../parts/hooks";
import { Card, Empty, ShowMore, Time } from "../parts/small";
import { PollBadge, PollNotice } from "../parts/stale";

const pollInterval = 3000; // milliseconds
const page = 50;

interface Listed {
  deployment: Deployment;
  /** Null: the root relay was not asked, did not answer, or does not know the job any more. */
  counts: OutcomeCount[] | null;
}

export function DeploymentsPage(): JSX.Element {
  const counts = useRef(new DeploymentCounts());
  const { shown, lastUpdate, problem, now, showMore } = usePages("deployments", pollInterval, (pages, signal) => load(pages, signal, counts.current));
  useSeconds();
  useEffect(() => {
    document.title = "Deployments · Muster";
  }, []);
  return (
    <>
      <header class="page-head">
        <div class="page-title">
          <h1>Deployments</h1>
          <PollBadge lastUpdate={lastUpdate} />
        </div>
      </header>
      <PollNotice problem={problem} lastUpdate={lastUpdate} />
      {!shown && !problem && <Empty>Loading deployments.</Empty>}
      {shown && (
        <Card title="Newest first" id="deployments">
          {shown.deployments.length === 0 && (
            <Empty>
              There is no deployment yet. Choose one of the <a href="#/templates">templates</a>.
            </Empty>
          )}
          {shown.deployments.length > 0 && <DeploymentTable deployments={shown.deployments} now={now} />}
          {shown.more && <ShowMore label="Show older deployments" onShow={showMore} />}
        </Card>
      )}
    </>
  );
}

async function load(pages: number, signal: AbortSignal, counts: DeploymentCounts): Promise<{ deployments: Listed[]; more: boolean }> {
  const listed = (each: { deployments?: WireDeployment[]; nextPageToken?: string }) => (each.deployments ?? []).map(parseDeployment);
  const { items: deployments, more } = await getPages("/api/v1/deployments", page, pages, listed, signal);
  const found = await counts.load(deployments, signal);
  return { deployments: deployments.map((deployment) => ({ deployment, counts: found.get(deployment.id) ?? null })), more };
}

function DeploymentTable({ deployments, now }: { deployments: Listed[]; now: number }): JSX.Element {
  return (
    <table class="rows">
      <thead>
        <tr>
          <th scope="col">Template</th>
          <th scope="col">State</th>
          <th scope="col">Nodes</th>
          <th scope="col">Created</th>
        </tr>
      </thead>
      <tbody>
        {deployments.map((listed) => (
          <DeploymentRow key={listed.deployment.id} {...listed} now={now} />
        ))}
      </tbody>
    </table>
  );
}

function DeploymentRow({ deployment, counts, now }: Listed & { now: number }): JSX.Element {
  const { id, state, created, ended, createdBy, problem, cancelRequestedBy, action } = deployment;
  const succeeded: OutcomeCount[] = [{ kind: "succeeded", word: "succeeded", count: deployment.succeeded }];
  return (
    <tr data-deployment={id}>
      <td data-label="Template">
        <a href={deploymentLink(id)}>{subjectOf(deployment)}</a>
        {action !== "deploy" && <span class="tag">{action}</span>}
        <div class="mono muted" title={id}>
          {shortId(id)}
        </div>
      </td>
      <td data-label="State">
        <DeploymentBadge state={state} cancelling={cancelRequestedBy !== "" && !hasEnded(state)} />
        {problem && <div class={state === "failed" ? "bad-text" : "muted"}>{problem}</div>}
      </td>
      <td data-label="Nodes">
        <OutcomeList counts={counts ?? succeeded} targets={deployment.targets} />
      </td>
      <td data-label="Created">
        <Time at={created} now={now} /> <span class="muted">by {nameOf(createdBy)}</span>
        {ended > 0 && <div class="muted">took {duration((ended - created) / 1000)}</div>}
      </td>
    </tr>
  );
}
