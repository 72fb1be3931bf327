// The kind of a pair is its outcome, or the reason why it has none. The grid, the legend, the tables and
// the timeline take words, order and shapes from this table.

export type Kind =
  | "genuine"
  | "error"
  | "timed_out"
  | "not_started"
  | "running"
  | "slow"
  | "stuck"
  | "blocked"
  | "backpressured"
  | "not_responding"
  | "network_lost"
  | "segment_lost"
  | "crashed"
  | "no_outcome"
  | "pending";

export interface KindFacts {
  kind: Kind;
  label: string;
  meaning: string;
  /** The pair failed or needs attention. */
  trouble: boolean;
  /** Lower is worse; the initial order of stragglers. */
  severity: number;
  /** White lines on the cell's colour, in a box of 10 x 10, so that the kind does not depend on the colour alone. */
  glyph: string;
  /** Drawn as an outline, with the glyph in the kind's colour. */
  hollow: boolean;
}

export const kinds: readonly KindFacts[] = [
  facts("genuine", "Genuine", "the plugin's genuine result is committed", false, 90, ""),
  facts("error", "Error", "an error is committed instead of a result", true, 10, "M5 2V5.6M5 7.4V8.2"),
  facts("timed_out", "Timed out", "no result in time; a later result replaces the time-out until the run is sealed", true, 11, "M5 2.2V5.2H7.8"),
  facts("not_started", "Not started", "no heartbeat and no result yet", false, 80, "", true),
  facts("running", "Running", "in progress; the fill of the cell shows how far", false, 81, ""),
  facts("slow", "Slow", "progresses more slowly than 90 % of the pairs of its plugin", true, 7, "M2.5 3.5L5 6.5L7.5 3.5"),
  facts("stuck", "Stuck", "heartbeats arrive, but the progress does not advance", true, 5, "M3.7 2.5V7.5M6.3 2.5V7.5"),
  facts("blocked", "Blocked", "waits for an external dependency", true, 6, "M2.2 5H7.8"),
  facts("backpressured", "Backpressured", "a service asked the sender to wait", true, 8, "M2 3.4H8M2 6.6H8"),
  facts("not_responding", "Not responding", "no heartbeats, but the machine acknowledges packets", true, 2, "M5 2.4A2.6 2.6 0 1 1 4.99 2.4"),
  facts("network_lost", "Network lost", "no heartbeats, and packets are not acknowledged", true, 1, "M2.2 7.8L7.8 2.2"),
  facts("segment_lost", "Segment lost", "many pairs became silent at the same time: the fault is likely between them and the service", true, 4, "M1.8 5.8L5.8 1.8M4.2 8.2L8.2 4.2"),
  facts("crashed", "Crashed", "the connection closed unexpectedly, or the process restarted", true, 0, "M2.4 2.4L7.6 7.6M7.6 2.4L2.4 7.6"),
  facts("no_outcome", "No outcome", "the run ended before the pair had an outcome", false, 83, "M3 7L7 3", true),
  facts("pending", "Pending", "the service reports no reason", false, 82, "M4.9 5H5.1", true),
];

function facts(kind: Kind, label: string, meaning: string, trouble: boolean, severity: number, glyph: string, hollow = false): KindFacts {
  return { kind, label, meaning, trouble, severity, glyph, hollow };
}

const indexes = new Map<Kind, number>(kinds.map((k, index) => [k.kind, index]));

/** Returns the position in `kinds`. */
export function indexOf(kind: Kind): number {
  return indexes.get(kind)!;
}

export function factsOf(kind: Kind): KindFacts {
  return kinds[indexOf(kind)]!;
}

const byReason = new Map<string, Kind>(Object.entries({
  REASON_NOT_STARTED: "not_started",
  REASON_RUNNING: "running",
  REASON_SLOW: "slow",
  REASON_STUCK: "stuck",
  REASON_NOT_RESPONDING: "not_responding",
  REASON_NETWORK_LOST: "network_lost",
  REASON_SEGMENT_LOST: "segment_lost",
  REASON_CRASHED: "crashed",
  REASON_BLOCKED: "blocked",
  REASON_BACKPRESSURED: "backpressured",
  REASON_TIMED_OUT: "timed_out",
  REASON_RUN_ENDED: "no_outcome",
}));

/** Returns the kind for a reason. */
export function kindOfReason(reason: string | undefined): Kind {
  return byReason.get(reason ?? "") ?? "pending";
}

export function kindOf(outcome: string | undefined, reason: string | undefined): Kind {
  switch (outcome) {
    case "OUTCOME_GENUINE":
      return "genuine";
    case "OUTCOME_ERROR":
      return "error";
    case "OUTCOME_TIMED_OUT":
      return "timed_out";
    default:
      return kindOfReason(reason);
  }
}

export function hasOutcome(kind: Kind): boolean {
  return kind === "genuine" || kind === "error" || kind === "timed_out";
}

/** Returns whether heartbeats and progress mean nothing any more: the pair has an outcome, or its run has ended. */
export function isFinal(kind: Kind): boolean {
  return hasOutcome(kind) || kind === "no_outcome";
}

/** Sorts by severity, the worst first. */
export function bySeverity<T extends { kind: Kind }>(rows: readonly T[]): T[] {
  return [...rows].sort((a, b) => factsOf(a.kind).severity - factsOf(b.kind).severity);
}

/** Describes a presence. `silent` means that heartbeats are missing, so the age of the last one grows. */
export function presenceOf(presence: string): { word: string; label: string; silent: boolean; trouble: boolean } {
  switch (presence) {
    case "PRESENCE_ONLINE":
      return { word: "online", label: "Online", silent: false, trouble: false };
    case "PRESENCE_LATE":
      return { word: "late", label: "Late", silent: true, trouble: true };
    case "PRESENCE_SUSPECT":
      return { word: "suspect", label: "Suspect", silent: true, trouble: true };
    case "PRESENCE_LOST":
      return { word: "lost", label: "Lost", silent: true, trouble: true };
    case "PRESENCE_OFFLINE":
      return { word: "offline", label: "Not collecting", silent: false, trouble: false };
    case "PRESENCE_UNKNOWN":
      return { word: "unknown", label: "Unknown", silent: false, trouble: false };
    default:
      return { word: "never", label: "No heartbeats", silent: false, trouble: false };
  }
}
