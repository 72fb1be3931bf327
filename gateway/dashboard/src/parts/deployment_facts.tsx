// Facts of a deployment: its content, its creator, its workspace, and the deployments that belong to it.
import type { JSX } from "preact";
import type { Deployment, WorkspaceUse } from "../model/deployment";
import { count, duration, nameOf } from "../model/format";
import { deploymentLink, documentLink, SourceText, workspaceLink } from "./deployed";
import { Time } from "./small";

export function DeploymentFacts({ deployment, now }: { deployment: Deployment; now: number }): JSX.Element {
  const { template, type, action, created, createdBy, ended, late, cancelRequestedBy, job, workspace, skipConformance, forced, related } = deployment;
  const exists = !deployment.build || deployment.build.image !== ""; // a build that succeeds creates the version
  return (
    <section class="card" aria-label="Deployment">
      <dl class="facts">
        {template && (
          <div>
            <dt>Template</dt>
            <dd>
              {exists ? <a href={documentLink("template", template)}>{template}</a> : template}
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
        {late > 0 && (
          <div data-test="late">
            <dt>Late</dt>
            <dd>
              <Time at={late} now={now} />, the outcome of a node that had been given up
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
              {/* A workspace of the name of a deleted one is another one. */}
              {workspace.deletion ? workspace.name : <a href={workspaceLink(workspace.name)}>{workspace.name}</a>}, {workspaceText(workspace)}
              {workspace.deletion && (
                <div class="muted">
                  deleted by <span title={workspace.deletion.by}>{nameOf(workspace.deletion.by)}</span>, <Time at={workspace.deletion.at} now={now} />
                </div>
              )}
              {workspace.refused > 0 && (
                <div class="muted">
                  The version of the node was refused <Time at={workspace.refused} now={now} />. The node keeps it for a day in workspaces-refused.
                </div>
              )}
            </dd>
          </div>
        )}
        {skipConformance && (
          <div data-test="conformance">
            <dt>Conformance</dt>
            <dd>not checked</dd>
          </div>
        )}
        {forced && (
          <div data-test="forced">
            <dt>Forced</dt>
            <dd>it may run a second time on some nodes</dd>
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
        <Images deployment={deployment} />
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

function workspaceText({ version, saves }: WorkspaceUse): string {
  const from = version > 0 ? `from version ${count(version)}` : "began empty";
  if (saves === null) return from;
  return `${from}; ${saves ? "makes a new version" : "not changed"}`;
}

// The image that runs, or for a build the base and the image that it makes.
function Images({ deployment: { image, build } }: { deployment: Deployment }): JSX.Element {
  return (
    <>
      <div class="wide" data-test={build ? "base" : "image"}>
        <dt>{build ? "Base, the image of the type" : "Image"}</dt>
        <dd>
          <code>{image}</code>
        </dd>
      </div>
      {build && (
        <div class="wide" data-test="repository">
          <dt>Repository</dt>
          <dd>
            <code>{build.repository}</code>
          </dd>
        </div>
      )}
      {build?.source && (
        <div class="wide" data-test="source">
          <dt>Source</dt>
          <dd>
            <SourceText source={build.source} />
          </dd>
        </div>
      )}
      {build?.image && (
        <div class="wide" data-test="image">
          <dt>Built image</dt>
          <dd>
            <code>{build.image}</code>
          </dd>
        </div>
      )}
    </>
  );
}
