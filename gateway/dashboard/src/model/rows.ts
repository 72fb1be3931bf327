// The rows of the tables of pairs.
import { clock } from "./format";
import { factsOf, isFinal } from "./kinds";
import { begin, isEnded, type Pair, type Status } from "./parse";
import { keyOf, type RunModel } from "./run_model";

export type Column = "reason" | "plugin" | "node" | "since" | "heartbeat" | "size";

/** Returns the stragglers that the service names, each in its newest state. */
export function stragglers(model: RunModel): Pair[] {
  const rows: Pair[] = [];
  for (const listed of model.status?.stragglers ?? []) {
    const newest = model.pairs.get(keyOf(listed.plugin, listed.node));
    const pair = newest && newest.receivedAt > listed.receivedAt ? newest : listed;
    if (!isFinal(pair.kind)) rows.push(pair);
  }
  return rows;
}

/** Returns the pairs that no agent or worker has started. */
export function notStarted(model: RunModel): Pair[] {
  const rows: Pair[] = [];
  for (const pair of model.pairs.values()) {
    if (pair.kind === "not_started") rows.push(explained(pair, model.status, model.now()));
  }
  return rows;
}

/** Returns the pair with the texts that the stream of a run omits because they are the same for all pairs without a start. */
export function explained(pair: Pair, status: Status | null, now: number): Pair {
  if (pair.kind !== "not_started" || pair.detail || pair.next || !status) return pair;
  return { ...pair, detail: "no heartbeat was received yet", next: nextOfNotStarted(status, now) };
}

function nextOfNotStarted(status: Status, now: number): string {
  if (isEnded(status.state)) return "";
  if (status.state === "planned" && status.stateReason) return `the run ${status.stateReason}`;
  if (!status.deadline) return "stays pending";
  return `becomes timed out at ${clock(status.deadline, now)} unless its result arrives`;
}

/** Returns the pairs without a genuine result that will not get one soon: errors, time-outs, and those of an ended run. */
export function failures(model: RunModel): Pair[] {
  const rows: Pair[] = [];
  for (const pair of model.pairs.values()) {
    if (isFinal(pair.kind) && pair.kind !== "genuine") rows.push(pair);
  }
  return rows;
}

/** Returns the pairs whose result can be downloaded. */
export function results(model: RunModel): Pair[] {
  const rows: Pair[] = [];
  for (const pair of model.pairs.values()) {
    if (pair.kind === "genuine") rows.push(pair);
  }
  return rows;
}

/** Returns a sorted copy. Equal rows are ordered by plugin and node, so that a redraw does not move them. */
export function sort(rows: readonly Pair[], by: Column, descending: boolean): Pair[] {
  const turn = descending ? -1 : 1;
  return [...rows].sort((a, b) => turn * compare(a, b, by) || text(a.plugin, b.plugin) || text(a.node, b.node));
}

function compare(a: Pair, b: Pair, by: Column): number {
  switch (by) {
    case "reason": // the worst first, then the longest
      return factsOf(a.kind).severity - factsOf(b.kind).severity || begin(a) - begin(b);
    case "plugin":
      return text(a.plugin, b.plugin);
    case "node":
      return text(a.node, b.node);
    case "since":
      return begin(a) - begin(b);
    case "heartbeat":
      return lastHeartbeatOf(a) - lastHeartbeatOf(b);
    case "size":
      return a.size - b.size;
  }
}

/** Returns the time of the last heartbeat by the browser's clock; 0: never. */
export function lastHeartbeatOf(pair: Pair): number {
  return pair.age < 0 ? 0 : pair.receivedAt - pair.age * 1000;
}

const names = new Intl.Collator("en", { numeric: true });

function text(a: string, b: string): number {
  return names.compare(a, b);
}

/** Returns the rows that contain all words in any of their texts. */
export function matching(rows: readonly Pair[], words: string): readonly Pair[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  if (wanted.length === 0) return rows;
  return rows.filter((pair) => {
    const all = [pair.plugin, pair.node, factsOf(pair.kind).label, pair.detail, pair.error, pair.progress?.message ?? ""]
      .join("\n")
      .toLowerCase();
    return wanted.every((word) => all.includes(word));
  });
}
