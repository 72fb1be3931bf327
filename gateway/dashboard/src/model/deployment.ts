// Converts deployments of the API for the pages.
import { outcomeOf, outcomeWord, type Outcome } from "./outcomes";
import { hex, number, text, time } from "./parse";
import { source, type Source } from "./source";
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
  /** The word of the outcome that the root relay had given before that of the node arrived; empty: there was none. */
  earlier: string;
  /** The deployments that retry and destroy it on this node; may be empty. */
  retriedBy: string;
  destroyedBy: string;
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
  /** Whether the node saves a new version of it; null: not known yet. */
  saves: boolean | null;
  /** When the jobs service refused the version that the node sent; 0: it did not. */
  refused: number;
  /** Its deletion; null: it exists. */
  deletion: { by: string; at: number } | null;
}

/** NAME in the container, and the stored secret with its version. */
export interface SecretUse {
  name: string;
  secret: string;
  version: number;
}

/** The build of a template. */
export interface Build {
  repository: string;
  source: Source | null;
  /** The built image by its digest; empty until the build has succeeded. */
  image: string;
}

export interface Deployment {
  id: string;
  job: string;
  type: string;
  template: string;
  action: string;
  /** What its containers run; of a build, the base: the image of the type. */
  image: string;
  /** Null: it is the deployment of a template or type. */
  build: Build | null;
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
  secrets: SecretUse[];
  /** It was created without the check of conformance. */
  skipConformance: boolean;
  /** It may run a second time on some nodes. */
  forced: boolean;
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

/** "deployment" or "build", for sentences. */
export function nounOf({ build }: Deployment): string {
  return build ? "build" : "deployment";
}

/** Returns the title of a problem: also a deployment that runs can have one. */
export function problemTitle(state: DeploymentState, noun = "deployment"): string {
  switch (state) {
    case "pending":
      return `The ${noun} is pending`;
    case "running":
      return `The ${noun} is running, with a problem`;
    case "succeeded":
      return `The ${noun} succeeded, with a problem`;
    case "failed":
      return `The ${noun} failed`;
    case "cancelled":
      return `The ${noun} was cancelled`;
    default:
      return `The ${noun} has a problem`;
  }
}

/** The template, or the type that is deployed alone. */
export function subjectOf(deployment: Deployment): string {
  return deployment.template || deployment.type;
}

const order: Record<Outcome["kind"], number> = { failed: 0, timed_out: 0, cancelled: 0, unknown: 0, running: 1, waiting: 1, succeeded: 2 };

function node(wire: WireDeploymentNode, ended: boolean, neverSent: boolean): DeployedNode {
  return {
    node: text(wire.node),
    started: time(wire.startTime),
    outcome: outcomeOf(wire.final, Boolean(wire.startTime), ended, neverSent),
    earlier: wire.earlier ? outcomeWord(wire.earlier.outcome) : "",
    retriedBy: text(wire.retriedBy),
    destroyedBy: text(wire.destroyedBy),
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

function workspaceOf({ workspace, workspaceDeletion, nodes }: WireDeployment): WorkspaceUse | null {
  if (!workspace?.workspace) return null;
  const saved = (nodes ?? []).find((each) => each.workspace)?.workspace; // it has one node
  return {
    name: text(workspace.workspace),
    version: number(workspace.version),
    saves: saved ? hex(saved.sha256) !== hex(workspace.sha256) : null,
    refused: time((nodes ?? []).find((each) => each.workspaceRefusedTime)?.workspaceRefusedTime),
    deletion: workspaceDeletion ? { by: text(workspaceDeletion.deletedBy), at: time(workspaceDeletion.deleteTime) } : null,
  };
}

/** Parses a deployment. Its nodes are ordered: the failed ones, those that have not ended, and the others. */
export function deployment(wire: WireDeployment): Deployment {
  const state = stateOf(wire.state);
  const nodes = (wire.nodes ?? []).map((each) => node(each, hasEnded(state), wire.neverSent ?? false));
  return {
    id: text(wire.deployment),
    job: text(wire.job),
    type: text(wire.type),
    template: text(wire.template),
    action: text(wire.action),
    image: text(wire.image),
    build: wire.build ? { repository: text(wire.build.repository), source: source(wire.build.source), image: text(wire.build.image) } : null,
    state,
    problem: text(wire.problem),
    createdBy: text(wire.createdBy),
    created: time(wire.createTime),
    ended: time(wire.endTime),
    late: time(wire.lateTime),
    targets: number(wire.targets),
    succeeded: number(wire.succeeded),
    cancelRequestedBy: text(wire.cancelRequestedBy),
    workspace: workspaceOf(wire),
    secrets: (wire.secrets ?? []).map((each) => ({ name: text(each.name), secret: text(each.secret), version: number(each.version) })),
    skipConformance: wire.skipConformance ?? false,
    forced: wire.forced ?? false,
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
