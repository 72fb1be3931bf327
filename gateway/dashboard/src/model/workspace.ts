// Converts workspaces of the API for the pages.
import { shellWord } from "./deploy_command";
import { hex, number, text, time } from "./parse";
import type { WireWorkspace, WireWorkspaceVersion } from "./wire";

export type WorkspaceState = "free" | "in_use" | "saving" | "suspect" | "unknown";

export interface WorkspaceVersion {
  version: number;
  sha256: string;
  size: number;
  deployment: string;
  node: string;
  created: number;
  /** Links and other entries that were not saved. */
  omitted: number;
  /** The version that it repeats, and the URI of the operator; 0: it was saved by its deployment. */
  restoredFrom: number;
  restoredBy: string;
}

export interface Workspace {
  name: string;
  state: WorkspaceState;
  /** The newest version; 0: nothing was saved yet. */
  latest: number;
  /** The deployment that has it, its node, and since when; empty and 0 if it is free. */
  deployment: string;
  node: string;
  since: number;
  problem: string;
  /** The newest first. */
  versions: WorkspaceVersion[];
  /** Bytes of all stored versions. */
  size: number;
}

function stateOf(state: string | undefined): WorkspaceState {
  const word = (state ?? "").replace("WORKSPACE_STATE_", "").toLowerCase();
  switch (word) {
    case "free":
    case "in_use":
    case "saving":
    case "suspect":
      return word;
    default:
      return "unknown";
  }
}

function version(wire: WireWorkspaceVersion): WorkspaceVersion {
  return {
    version: number(wire.version),
    sha256: hex(wire.sha256),
    size: number(wire.size),
    deployment: text(wire.deployment),
    node: text(wire.node),
    created: time(wire.createTime),
    omitted: number(wire.omitted),
    restoredFrom: number(wire.restoredFrom),
    restoredBy: text(wire.restoredBy),
  };
}

export function workspace(wire: WireWorkspace): Workspace {
  return {
    name: text(wire.workspace),
    state: stateOf(wire.state),
    latest: number(wire.latest),
    deployment: text(wire.deployment),
    node: text(wire.node),
    since: time(wire.since),
    problem: text(wire.problem),
    versions: (wire.versions ?? []).map(version),
    size: number(wire.size),
  };
}

/** What an operator can do about a state. */
export interface NextStep {
  title: string;
  text: string;
  /** A heading for the command, and the command. */
  action: string;
  command: string;
}

/** Returns what an operator can do about the state; null: nothing is to be done. */
export function nextStep({ name, state, deployment, node }: Workspace): NextStep | null {
  // With its deployment, the command does not take the workspace from a later one.
  const unlock = { action: "Unlock", command: `muster workspace unlock ${shellWord(name)} --deployment ${shellWord(deployment)}` };
  const kept = "keep the newest stored version. What the deployment did to the workspace is lost then";
  switch (state) {
    case "in_use":
      return {
        title: "A deployment has the workspace",
        text: "Another deployment gets it when this one has ended, or is cancelled.",
        action: "Cancel the deployment",
        command: `muster deployment cancel ${shellWord(deployment)}`,
      };
    case "saving":
      return {
        title: `Node ${node} has a version that it has not sent yet`,
        text: `Wait until the node is reachable and has sent it. If it never will be, ${kept}.`,
        ...unlock,
      };
    case "suspect":
      return {
        title: "It is not known what the deployment did to the workspace",
        text: `Look at what the deployment did. If node ${node} will not send its version, ${kept}.`,
        ...unlock,
      };
    default:
      return null;
  }
}

/** Returns the versions that may be restored: only of a free workspace, and not the newest one. */
export function restorable({ state, latest, versions }: Workspace): WorkspaceVersion[] {
  return state === "free" ? versions.filter((each) => each.version !== latest) : [];
}

/** Returns the command that deletes the workspace; null: a deployment that has not ended has it. */
export function deleteCommand({ name, state, deployment }: Workspace): string | null {
  switch (state) {
    case "free":
      return `muster workspace delete ${shellWord(name)}`;
    case "saving":
    case "suspect":
      return `muster workspace delete ${shellWord(name)} --deployment ${shellWord(deployment)}`;
    default:
      return null;
  }
}

export function restoreCommand(name: string, version: number): string {
  return `muster workspace restore ${shellWord(name)} ${version}`;
}
