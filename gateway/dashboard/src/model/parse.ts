// Converts API messages for the pages: numbers for times and counts, no missing fields.
import { isFinal, kindOf, kindOfReason, type Kind } from "./kinds";
import type {
  WireCounts,
  WireEstimate,
  WireEvent,
  WireFault,
  WireNode,
  WirePair,
  WirePlugin,
  WireProgress,
  WireReasonCount,
  WireRun,
  WireStatus,
} from "./wire";

export interface Counts {
  planned: number;
  pending: number;
  genuine: number;
  errors: number;
  timedOut: number;
}

/** Times are milliseconds since 1970 by the server's clock; 0: absent. */
export interface Estimate {
  earliest: number;
  latest: number;
}

export interface Progress {
  message: string;
  total: number;
  completed: number;
  failures: string[];
  errors: string[];
  omittedFailures: number;
  omittedErrors: number;
  time: number;
}

export interface Fault {
  check: string;
  address: string;
  message: string;
  nextStep: string;
}

export interface Pair {
  plugin: string;
  node: string;
  kind: Kind;
  error: string;
  size: number;
  updated: number;
  since: number;
  progress: Progress | null;
  presence: string;
  phase: string;
  detail: string;
  next: string;
  /** Seconds since the last heartbeat when the message was received; negative: no heartbeat yet. */
  age: number;
  /** When the message was received, by the browser's clock. */
  receivedAt: number;
  fault: Fault | null;
  /** Only on the page of a node. */
  run: string;
}

export interface PluginStatus {
  plugin: string;
  once: boolean;
  counts: Counts;
  percent: number;
  reasons: ReasonCount[];
  estimate: Estimate | null;
}

export interface ReasonCount {
  kind: Kind;
  count: number;
}

export interface Status {
  run: string;
  title: string;
  state: RunState;
  stateReason: string;
  percent: number;
  created: number;
  deadline: number;
  ended: number;
  plugins: PluginStatus[];
  feedTime: number;
  time: number;
  counts: Counts;
  reasons: ReasonCount[];
  estimate: Estimate | null;
  stragglers: Pair[];
  doubt: string;
  /** Damaged stored results and archives. */
  damaged: number;
}

export interface Run {
  id: string;
  title: string;
  state: RunState;
  stateReason: string;
  created: number;
  deadline: number;
  ended: number;
  createdBy: string;
  counts: Counts;
  damaged: number;
  pinned: boolean;
}

export interface NodeEvent {
  time: number;
  presence: string;
  kind: Kind | null;
  run: string;
  plugin: string;
  detail: string;
}

export interface Node {
  node: string;
  presence: string;
  since: number;
  lastHeartbeat: number;
  /** Seconds; null: unknown. */
  clockSkew: number | null;
  duplicateAgent: boolean;
  pairs: Pair[];
  events: NodeEvent[];
}

export type RunState = "planned" | "running" | "post_processing" | "complete" | "failed" | "cancelled" | "unknown";

export function stateOf(state: string | undefined): RunState {
  const word = (state ?? "").replace("RUN_STATE_", "").toLowerCase();
  switch (word) {
    case "planned":
    case "running":
    case "post_processing":
    case "complete":
    case "failed":
    case "cancelled":
      return word;
    default:
      return "unknown";
  }
}

export function isEnded(state: RunState): boolean {
  return state === "complete" || state === "failed" || state === "cancelled";
}

/** Parses a timestamp to milliseconds; 0 if it is absent or invalid. */
export function time(text: string | null | undefined): number {
  return (text && Date.parse(text)) || 0;
}

/** Parses a duration to seconds; null if it is absent or invalid. */
export function seconds(text: string | null | undefined): number | null {
  const value = text?.endsWith("s") ? Number(text.slice(0, -1)) : NaN;
  return Number.isFinite(value) ? value : null;
}

/** Parses a count: 64-bit numbers are strings. */
export function number(value: string | number | undefined | null): number {
  const result = Number(value ?? 0);
  return Number.isFinite(result) ? result : 0;
}

// Control and bidirectional characters could make a message look like something else.
const unprintable = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Removes unsafe characters from text of others; the framework escapes markup. */
export function text(value: string | null | undefined): string {
  return value ? value.replace(unprintable, "\ufffd") : "";
}

/** Returns bytes, which the API encodes in base64, in hexadecimal. */
export function hex(base64: string | null | undefined): string {
  try {
    return [...atob(base64 ?? "")].map((byte) => byte.charCodeAt(0).toString(16).padStart(2, "0")).join("");
  } catch {
    return "";
  }
}

export function counts(wire: WireCounts | null | undefined): Counts {
  return {
    planned: number(wire?.planned),
    pending: number(wire?.pending),
    genuine: number(wire?.genuine),
    errors: number(wire?.errors),
    timedOut: number(wire?.timedOut),
  };
}

/** Returns the share of outcomes, 0 to 1; 0 for a run without pairs. */
export function share(c: Counts): number {
  return c.planned > 0 ? (c.genuine + c.errors + c.timedOut) / c.planned : 0;
}

function estimate(wire: WireEstimate | null | undefined): Estimate | null {
  const earliest = time(wire?.earliest);
  const latest = time(wire?.latest);
  return earliest && latest ? { earliest, latest } : null;
}

function reasons(wire: WireReasonCount[] | null | undefined): ReasonCount[] {
  return (wire ?? []).map((r) => ({ kind: kindOfReason(r.reason), count: number(r.count) })).filter((r) => r.count > 0);
}

function progress(wire: WireProgress | null | undefined): Progress | null {
  if (!wire) return null;
  return {
    message: text(wire.message),
    total: number(wire.total),
    completed: number(wire.completed),
    failures: (wire.failures ?? []).map(text),
    errors: (wire.errors ?? []).map(text),
    omittedFailures: number(wire.omittedFailures),
    omittedErrors: number(wire.omittedErrors),
    time: time(wire.time),
  };
}

function fault(wire: WireFault | null | undefined): Fault | null {
  if (!wire) return null;
  return {
    check: (wire.check ?? "").replace("CHECK_", "").replaceAll("_", " ").toLowerCase(),
    address: text(wire.address),
    message: text(wire.message),
    nextStep: text(wire.nextStep),
  };
}

/** Parses a pair; `receivedAt` is the browser's time at the receipt of the message. */
export function pair(wire: WirePair, receivedAt: number): Pair {
  return {
    plugin: text(wire.plugin),
    node: text(wire.node),
    kind: kindOf(wire.outcome, wire.reason),
    error: text(wire.error),
    size: number(wire.size),
    updated: time(wire.updateTime),
    since: time(wire.reasonSince),
    progress: progress(wire.progress),
    presence: wire.presence ?? "",
    phase: wire.phase ?? "",
    detail: text(wire.detail),
    next: text(wire.next),
    age: seconds(wire.heartbeatAge) ?? -1,
    receivedAt,
    fault: fault(wire.fault),
    run: text(wire.run),
  };
}

/** Returns when the pair entered its state; 0: unknown. */
export function begin(pair: Pair): number {
  return isFinal(pair.kind) ? pair.updated || pair.since : pair.since || pair.updated;
}

function plugin(wire: WirePlugin): PluginStatus {
  return {
    plugin: text(wire.plugin),
    once: wire.once ?? false,
    counts: counts(wire.counts),
    percent: number(wire.percentComplete),
    reasons: reasons(wire.reasons),
    estimate: estimate(wire.estimate),
  };
}

export function status(wire: WireStatus, receivedAt: number): Status {
  return {
    run: text(wire.run),
    title: text(wire.title),
    state: stateOf(wire.state),
    stateReason: text(wire.stateReason),
    percent: number(wire.percentComplete),
    created: time(wire.createTime),
    deadline: time(wire.deadline),
    ended: time(wire.endTime),
    plugins: (wire.plugins ?? []).map(plugin),
    feedTime: time(wire.feedTime),
    time: time(wire.time),
    counts: counts(wire.counts),
    reasons: reasons(wire.reasons),
    estimate: estimate(wire.estimate),
    stragglers: (wire.stragglers ?? []).map((p) => pair(p, receivedAt)),
    doubt: text(wire.doubt),
    damaged: number(wire.damagedResults),
  };
}

export function run(wire: WireRun): Run {
  return {
    id: text(wire.id),
    title: text(wire.title),
    state: stateOf(wire.state),
    stateReason: text(wire.stateReason),
    created: time(wire.createTime),
    deadline: time(wire.deadline),
    ended: time(wire.endTime),
    createdBy: text(wire.createdBy),
    counts: counts(wire.counts),
    damaged: number(wire.damagedResults),
    pinned: wire.pinned ?? false,
  };
}

function event(wire: WireEvent): NodeEvent {
  const reason = wire.reason && wire.reason !== "REASON_UNSPECIFIED" ? kindOfReason(wire.reason) : null;
  return {
    time: time(wire.time),
    presence: wire.presence ?? "",
    kind: reason,
    run: text(wire.run),
    plugin: text(wire.plugin),
    detail: text(wire.detail),
  };
}

export function node(wire: WireNode, receivedAt: number): Node {
  return {
    node: text(wire.node),
    presence: wire.presence ?? "",
    since: time(wire.presenceSince),
    lastHeartbeat: time(wire.lastHeartbeat),
    clockSkew: seconds(wire.clockSkew),
    duplicateAgent: wire.duplicateAgent ?? false,
    pairs: (wire.pairs ?? []).map((p) => pair(p, receivedAt)),
    events: (wire.events ?? []).map(event),
  };
}
