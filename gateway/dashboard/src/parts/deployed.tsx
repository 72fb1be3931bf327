// Small components of deployments and templates.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { count } from "../model/format";
import type { DeploymentState } from "../model/deployment";
import type { Source } from "../model/source";
import type { OutcomeCount, OutcomeKind } from "../model/outcomes";
import type { Kind as DocumentKind } from "../model/template";
import type { Kind } from "../model/kinds";
import type { WorkspaceState } from "../model/workspace";
import { KindIcon, ShowMore } from "./small";

export function deploymentLink(deployment: string): string {
  return `#/deployments/${encodeURIComponent(deployment)}`;
}

/** The page of a version, NAME@VERSION, or of the newest one, NAME. */
export function documentLink(kind: DocumentKind, reference: string): string {
  return `#/${kind === "type" ? "types" : "templates"}/${encodeURIComponent(reference)}`;
}

export function workspaceLink(workspace: string): string {
  return `#/workspaces/${encodeURIComponent(workspace)}`;
}

const stateLabels: Record<DeploymentState, string> = {
  pending: "Pending",
  running: "Running",
  succeeded: "Succeeded",
  failed: "Failed",
  cancelled: "Cancelled",
  unknown: "No outcome",
};

/** The state of a deployment; `cancelling`: it is to be cancelled and has not ended. */
export function DeploymentBadge({ state, cancelling }: { state: DeploymentState; cancelling: boolean }): JSX.Element {
  return (
    <span class={`badge state-${state}`} data-state={state}>
      {stateLabels[state]}
      {cancelling && ", to be cancelled"}
    </span>
  );
}

const workspaceLabels: Record<WorkspaceState, string> = {
  free: "Free",
  in_use: "In use",
  saving: "Saving",
  suspect: "Suspect",
  unknown: "Unknown",
};

export function WorkspaceBadge({ state }: { state: WorkspaceState }): JSX.Element {
  return (
    <span class={`badge workspace-${state.replaceAll("_", "-")}`} data-state={state}>
      {workspaceLabels[state]}
    </span>
  );
}

// The cells of the grid have the same colours and shapes.
const icons: Record<OutcomeKind, Kind> = {
  succeeded: "genuine",
  failed: "error",
  timed_out: "timed_out",
  cancelled: "no_outcome",
  running: "running",
  waiting: "not_started",
  unknown: "no_outcome",
};

export function OutcomeIcon({ kind }: { kind: OutcomeKind }): JSX.Element {
  return <KindIcon kind={icons[kind]} />;
}

/** Nodes by outcome. */
export function OutcomeList({ counts, targets }: { counts: OutcomeCount[]; targets: number }): JSX.Element {
  return (
    <ul class="counts">
      {counts.map(({ kind, word, count: value }) => (
        <li key={word}>
          <OutcomeIcon kind={kind} />
          <b>{count(value)}</b> {word}
        </li>
      ))}
      {targets > 0 && <li class="of">of {count(targets)}</li>}
    </ul>
  );
}

/** The origin of the files of a built image. */
export function SourceText({ source }: { source: Source }): JSX.Element {
  const { kind, url, commit, folder, sha256 } = source;
  return (
    <>
      {kind}
      {url && (
        <>
          {" "}
          <code>{url}</code> at commit <code>{commit}</code>
        </>
      )}
      {folder && (
        <>
          , folder <code>{folder}</code>
        </>
      )}
      <div class="muted">
        SHA-256 of the files <code>{sha256}</code>
      </div>
    </>
  );
}

export function Value({ json, sensitive }: { json: string | null; sensitive: boolean }): JSX.Element {
  if (sensitive) return <span class="muted">(sensitive)</span>;
  if (json === null) return <span class="muted">none</span>;
  return <code class="value">{json}</code>;
}

/** The first rows of a list, and a button for the others. */
export function useFirst<T>(all: T[], first: number, noun: string): [rows: T[], foot: JSX.Element | null] {
  const [whole, setWhole] = useState(false);
  if (whole || all.length <= first) return [all, null];
  return [
    all.slice(0, first),
    <ShowMore label={`Show all ${count(all.length)} ${noun}`} onShow={() => setWhole(true)} />,
  ];
}
