// Converts deployments of the API for the pages.
import { outcomeOf, type Outcome } from "./outcomes";
import { hex, number, text, time } from "./parse";
import type { WireDeployment, WireDeploymentNode, WireRelated } from "./wire";

export type DeploymentState = "pending" | "running" | "succeeded" | "failed" | "cancelled" | "unknown";

/** The resolved value of a parameter. */
export interface Resolved {
  name: string;
  /** JSON, as its author wrote it; empty if it is sensitive. */
  value: string;
  source: string;
  sensitive: boolean;
}

export interface DeployedNode {
  node: string;
  /** Milliseconds since 1970; 0: it has not started. */
  started: number;
  outcome: Outcome;
  /** False: the output of the node may not be what the node signed. */
  verified: boolean;
  outputs: { name: string; value: string }[];
}

export interface DeployedFile {
  path: string;
  size: number;
  sha256: string;
}

/** Another deployment that retries or destroys this one, or that this one retries or destroys. */
export interface Related {
  relation: "retries" | "destroys" | "retried by" | "destroyed by";
  id: string;
  /** Empty: not known. */
  state: DeploymentState | "";
}

/** The workspace of a deployment, and the version that its container gets; 0: an empty folder. */
export interface WorkspaceUse {
  name: string;
  version: number;
}

export interface Deployment {
  id: string;
  job: string;
  type: string;
  template: string;
  action: string;
  image: string;
  state: DeploymentState;
  problem: string;
  createdBy: string;
  created: number;
  ended: number;
  /** When the newest outcome arrived that replaced the one of a node that had been given up; 0: there is none. */
  late: number;
  targets: number;
  succeeded: number;
  cancelRequestedBy: string;
  /** Null: it has none. */
  workspace: WorkspaceUse | null;
  related: Related[];
  parameters: Resolved[];
  files: DeployedFile[];
  nodes: DeployedNode[];
  /** The token of the next page of nodes; empty: there is none. */
  next: string;
}

function stateOf(state: string | undefined): DeploymentState {
  const word = (state ?? "").replace("DEPLOYMENT_STATE_", "").toLowerCase();
  switch (word) {
    case "pending":
    case "running":
    case "succeeded":
    case "failed":
    case "cancelled":
      return word;
    default:
      return "unknown";
  }
}

export function hasEnded(state: DeploymentState): boolean {
  return state === "succeeded" || state === "failed" || state === "cancelled";
}

/** Returns the title of a problem: also a deployment that runs can have one. */
export function problemTitle(state: DeploymentState): string {
  switch (state) {
    case "pending":
      return "The deployment is pending";
    case "running":
      return "The deployment is running, with a problem";
    case "succeeded":
      return "The deployment succeeded, with a problem";
    case "failed":
      return "The deployment failed";
    case "cancelled":
      return "The deployment was cancelled";
    default:
      return "The deployment has a problem";
  }
}

/** The template, or the type that is deployed alone. */
export function subjectOf(deployment: Deployment): string {
  return deployment.template || deployment.type;
}

const order: Record<Outcome["kind"], number> = { failed: 0, unknown: 0, running: 1, waiting: 1, succeeded: 2 };

function node(wire: WireDeploymentNode, ended: boolean): DeployedNode {
  return {
    node: text(wire.node),
    started: time(wire.startTime),
    outcome: outcomeOf(wire.final, Boolean(wire.startTime), ended),
    verified: wire.final?.recordsVerified ?? false,
    outputs: (wire.outputs?.outputs ?? []).map((output) => ({ name: text(output.name), value: text(output.value) })),
  };
}

function relatedTo(wire: WireDeployment): Related[] {
  const others = (relation: Related["relation"], all: WireRelated[]): Related[] =>
    all.map((other) => ({ relation, id: text(other.deployment), state: other.state ? stateOf(other.state) : "" }));
  return [
    ...others("retries", wire.retryOf ? [{ deployment: wire.retryOf }] : []),
    ...others("destroys", wire.destroys ? [{ deployment: wire.destroys }] : []),
    ...others("retried by", wire.retries ?? []),
    ...others("destroyed by", wire.destroyedBy ?? []),
  ];
}

/** Parses a deployment. Its nodes are ordered: the failed ones, those that have not ended, and the others. */
export function deployment(wire: WireDeployment): Deployment {
  const state = stateOf(wire.state);
  const nodes = (wire.nodes ?? []).map((each) => node(each, hasEnded(state)));
  return {
    id: text(wire.deployment),
    job: text(wire.job),
    type: text(wire.type),
    template: text(wire.template),
    action: text(wire.action),
    image: text(wire.image),
    state,
    problem: text(wire.problem),
    createdBy: text(wire.createdBy),
    created: time(wire.createTime),
    ended: time(wire.endTime),
    late: time(wire.lateTime),
    targets: number(wire.targets),
    succeeded: number(wire.succeeded),
    cancelRequestedBy: text(wire.cancelRequestedBy),
    workspace: wire.workspace?.workspace ? { name: text(wire.workspace.workspace), version: number(wire.workspace.version) } : null,
    related: relatedTo(wire),
    parameters: (wire.parameters ?? []).map((each) => ({
      name: text(each.name),
      value: text(each.value),
      source: text(each.source),
      sensitive: each.sensitive ?? false,
    })),
    files: (wire.files ?? []).map((file) => ({ path: text(file.path), size: number(file.size), sha256: hex(file.sha256) })),
    nodes: nodes.sort((a, b) => order[a.outcome.kind] - order[b.outcome.kind] || (a.node < b.node ? -1 : 1)),
    next: wire.nextPageToken ?? "",
  };
}
