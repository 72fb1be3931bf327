// The events of a run and the growth of its outcomes, from facts with a time of the server's clock.
import { count, plural } from "./format";
import { factsOf, hasOutcome, isFinal, kinds, type Kind } from "./kinds";
import { begin, isEnded, type Pair } from "./parse";
import type { RunModel } from "./run_model";

export interface TimelineEvent {
  time: number;
  /** The kind of pairs; null: the run as a whole. */
  kind: Kind | null;
  title: string;
  text: string;
  /** The node of one pair; "" for several pairs. */
  node: string;
  plugin: string;
  future: boolean;
}

export interface Growth {
  begin: number;
  end: number;
  /** Cumulative number of pairs by outcome, at the end of each step from `begin` to `end`. */
  genuine: number[];
  errors: number[];
  timedOut: number[];
  planned: number;
  /** Pairs with an outcome of which the service does not know the time. They are not in the lines. */
  timeless: number;
}

/** Milliseconds: events of several pairs of one plugin with one kind and cause within this time are merged. */
const mergeWithin = 10_000;
const namesShown = 3;
const reasonsShown = 3;

/** Computes the chart's numbers in `steps` equal steps up to `now`, or to the end of an ended run. */
export function growth(model: RunModel, steps: number, now: number): Growth | null {
  const { status } = model;
  if (!status?.created || !model.complete) return null;
  const begin = status.created;
  const end = Math.max(begin + 1000, isEnded(status.state) && status.ended ? status.ended : now);
  const result = { begin, end, genuine: zeros(steps), errors: zeros(steps), timedOut: zeros(steps), planned: model.pairs.size, timeless: 0 };
  const step = (end - begin) / steps;
  for (const pair of model.pairs.values()) {
    if (!hasOutcome(pair.kind)) continue;
    if (!pair.updated) {
      result.timeless++;
      continue;
    }
    const at = Math.min(steps - 1, Math.max(0, Math.floor((pair.updated - begin) / step)));
    const line = pair.kind === "genuine" ? result.genuine : pair.kind === "error" ? result.errors : result.timedOut;
    line[at]!++;
  }
  for (const line of [result.genuine, result.errors, result.timedOut]) {
    for (let index = 1; index < steps; index++) line[index]! += line[index - 1]!;
  }
  return result;
}

function zeros(length: number): number[] {
  return new Array<number>(length).fill(0);
}

/** Returns at most `limit` events, the newest first. */
export function timelineEvents(model: RunModel, now: number, limit: number): TimelineEvent[] {
  const all = [...ofPairs(model), ...ofRun(model, now)];
  all.sort((a, b) => b.time - a.time);
  return all.slice(0, limit);
}

function ofRun(model: RunModel, now: number): TimelineEvent[] {
  const { status } = model;
  if (!status) return [];
  const events: TimelineEvent[] = [];
  const add = (time: number, title: string, text = "") => {
    if (time) events.push({ time, kind: null, title, text, node: "", plugin: "", future: time > now });
  };
  add(status.created, "Run created");
  let [first, last] = [Infinity, 0];
  for (const pair of model.pairs.values()) {
    if (pair.kind !== "genuine" || !pair.updated) continue;
    first = Math.min(first, pair.updated);
    last = Math.max(last, pair.updated);
  }
  if (last) add(first, "First result");
  if (last > first && status.counts.pending === 0) add(last, "Last result");
  if (isEnded(status.state)) {
    add(status.ended, `Run ${status.state === "complete" ? "complete: the archive is sealed" : status.state}`, status.stateReason);
  }
  if (status.deadline && (!isEnded(status.state) || status.deadline < status.ended)) add(status.deadline, "Deadline");
  return events;
}

interface Entry {
  time: number;
  kind: Kind;
  plugin: string;
  node: string;
  text: string;
  /** For the end of a trouble: the kind of the trouble. */
  before?: Kind;
}

function ofPairs(model: RunModel): TimelineEvent[] {
  const entries: Entry[] = [...model.pastStates];
  for (const pair of model.pairs.values()) {
    if (!factsOf(pair.kind).trouble) continue;
    const time = isFinal(pair.kind) ? begin(pair) : pair.since;
    if (time) entries.push({ time, kind: pair.kind, plugin: pair.plugin, node: pair.node, text: textOf(pair) });
  }
  entries.sort((a, b) => a.time - b.time);
  return mergeEntries(entries);
}

function textOf(pair: Pair): string {
  return pair.error || pair.detail || pair.progress?.message || "";
}

function mergeEntries(entries: Entry[]): TimelineEvent[] {
  // By kind, plugin and kind before: the entries to merge, by node.
  const open = new Map<string, Map<string, Entry>>();
  const result: TimelineEvent[] = [];
  for (const entry of entries) {
    const key = `${entry.kind}/${entry.plugin}/${entry.before ?? ""}`;
    const group = open.get(key);
    // Two events of one pair are two phases.
    if (group && entry.time - firstOf(group).time <= mergeWithin && !group.has(entry.node)) {
      group.set(entry.node, entry);
      continue;
    }
    if (group) result.push(merge([...group.values()]));
    open.set(key, new Map([[entry.node, entry]]));
  }
  for (const group of open.values()) result.push(merge([...group.values()]));
  return result;
}

function firstOf(group: Map<string, Entry>): Entry {
  return group.values().next().value!;
}

function merge(group: Entry[]): TimelineEvent {
  const { time, kind, plugin, node, text } = group[0]!;
  const { label } = kinds.find((k) => k.kind === kind)!;
  if (group.length === 1) return { time, kind, title: label, text, node, plugin, future: false };
  return {
    time,
    kind,
    title: `${label}: ${plural(group.length, "pair")}`,
    text: groupText(group),
    node: "",
    plugin,
    future: false,
  };
}

/** Returns the nodes with the reason of each: "n1, n2: no journal", "n1, n4: PLUGIN_FAILED; n3: POLICY_REFUSED". */
function groupText(group: Entry[]): string {
  if (group.every((e) => e.text === group[0]!.text)) return namesAnd(group, group[0]!.text);
  const byReason = new Map<string, Entry[]>();
  for (const entry of group) {
    const reason = /^[A-Z][A-Z0-9_]+(?=:)/.exec(entry.text)?.[0] ?? entry.text;
    const entries = byReason.get(reason);
    if (entries) entries.push(entry);
    else byReason.set(reason, [entry]);
  }
  if (byReason.size > reasonsShown) return namesAnd(group, "");
  return [...byReason].map(([reason, entries]) => namesAnd(entries, reason)).join("; ");
}

function namesAnd(entries: Entry[], reason: string): string {
  const names = entries.slice(0, namesShown).map((e) => e.node);
  const more = entries.length - names.length;
  return names.join(", ") + (more > 0 ? ` and ${count(more)} more` : "") + (reason ? `: ${reason}` : "");
}
