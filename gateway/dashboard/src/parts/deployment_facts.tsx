// Facts of a deployment: its content, its creator, its workspace, and the deployments that belong to it.
import type { JSX } from "preact";
import type { Deployment } from "../model/deployment";
import { count, duration, nameOf } from "../model/format";
import { deploymentLink, documentLink, workspaceLink } from "./deployed";
import { Time } from "./small";

export function DeploymentFacts({ deployment, now }: { deployment: Deployment; now: number }): JSX.Element {
  const { template, type, action, image, created, createdBy, ended, cancelRequestedBy, job, workspace, related } = deployment;
  return (
    <section class="card" aria-label="Deployment">
      <dl class="facts">
        {template && (
          <div>
            <dt>Template</dt>
            <dd>
              <a href={documentLink("template", template)}>{template}</a>
            </dd>
          </div>
        )}
        <div>
          <dt>Type</dt>
          <dd>
            <a href={documentLink("type", type)}>{type}</a>
          </dd>
        </div>
        <div>
          <dt>Action</dt>
          <dd>{action}</dd>
        </div>
        <div>
          <dt>Created</dt>
          <dd>
            <Time at={created} now={now} /> by <span title={createdBy}>{nameOf(createdBy)}</span>
          </dd>
        </div>
        {ended > 0 && (
          <div>
            <dt>Ended</dt>
            <dd>
              <Time at={ended} now={now} />, after {duration((ended - created) / 1000)}
            </dd>
          </div>
        )}
        {cancelRequestedBy && (
          <div>
            <dt>Cancelled by</dt>
            <dd title={cancelRequestedBy}>{nameOf(cancelRequestedBy)}</dd>
          </div>
        )}
        {workspace && (
          <div data-test="workspace">
            <dt>Workspace</dt>
            <dd>
              <a href={workspaceLink(workspace.name)}>{workspace.name}</a>, {workspace.version > 0 ? `from version ${count(workspace.version)}` : "empty at first"}
            </dd>
          </div>
        )}
        {related.map(({ relation, id, state }) => (
          <div class="wide" key={relation + id} data-related={relation}>
            <dt>{relation.charAt(0).toUpperCase() + relation.slice(1)}</dt>
            <dd>
              <a class="mono" href={deploymentLink(id)}>
                {id}
              </a>
              {state && ` (${state})`}
            </dd>
          </div>
        ))}
        <div class="wide">
          <dt>Image</dt>
          <dd>
            <code>{image}</code>
          </dd>
        </div>
        <div class="wide">
          <dt>Job</dt>
          <dd>
            <code>{job}</code>
          </dd>
        </div>
      </dl>
    </section>
  );
}
