// What happened in a run: how results came in, and events. Only facts with a time of the server's clock.
import { factsOf, isFinal, kinds, type Kind } from "./kinds";
import { isEnded, type Pair } from "./parse";
import type { RunModel } from "./run_model";

export interface Happening {
  time: number;
  /** Of pairs; null: of the run as a whole. */
  kind: Kind | null;
  title: string;
  text: string;
  /** Of one pair; "" for more. */
  node: string;
  plugin: string;
  future: boolean;
}

export interface Growth {
  begin: number;
  end: number;
  /** How many pairs had come to each end, at the end of each step from `begin` to `end`. */
  genuine: number[];
  errors: number[];
  timedOut: number[];
  planned: number;
}

/** What lies closer together and is of one kind and plugin is one entry. */
const together = 10_000;
const namesShown = 3;

/** The chart's numbers, in `steps` equal steps up to `now`, or to the end of a run that has ended. */
export function growth(model: RunModel, steps: number, now: number): Growth | null {
  const { status } = model;
  if (!status?.created || !model.complete) return null;
  const begin = status.created;
  const end = Math.max(begin + 1000, isEnded(status.state) && status.ended ? status.ended : now);
  const result = { begin, end, genuine: zeros(steps), errors: zeros(steps), timedOut: zeros(steps), planned: model.pairs.size };
  const step = (end - begin) / steps;
  for (const pair of model.pairs.values()) {
    if (!isFinal(pair.kind)) continue;
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

/** The newest first, at most `most`. */
export function happenings(model: RunModel, now: number, most: number): Happening[] {
  const all = [...ofPairs(model), ...ofRun(model, now)];
  all.sort((a, b) => b.time - a.time);
  return all.slice(0, most);
}

function ofRun(model: RunModel, now: number): Happening[] {
  const { status } = model;
  if (!status) return [];
  const events: Happening[] = [];
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
}

function ofPairs(model: RunModel): Happening[] {
  const entries: Entry[] = [...model.seen];
  for (const pair of model.pairs.values()) {
    if (!factsOf(pair.kind).trouble) continue;
    const time = isFinal(pair.kind) ? pair.updated || pair.since : pair.since;
    if (time) entries.push({ time, kind: pair.kind, plugin: pair.plugin, node: pair.node, text: said(pair) });
  }
  entries.sort((a, b) => a.time - b.time);
  return gather(entries);
}

function said(pair: Pair): string {
  return pair.error || pair.detail || pair.progress?.message || "";
}

function gather(entries: Entry[]): Happening[] {
  const open = new Map<string, Entry[]>(); // by kind and plugin: those that are together so far
  const result: Happening[] = [];
  for (const entry of entries) {
    const key = `${entry.kind}/${entry.plugin}`;
    const group = open.get(key);
    if (group && entry.time - group[0]!.time <= together) {
      group.push(entry);
      continue;
    }
    if (group) result.push(asOne(group));
    open.set(key, [entry]);
  }
  for (const group of open.values()) result.push(asOne(group));
  return result;
}

function asOne(group: Entry[]): Happening {
  const { time, kind, plugin, node, text } = group[0]!;
  const { label } = kinds.find((k) => k.kind === kind)!;
  if (group.length === 1) return { time, kind, title: label, text, node, plugin, future: false };
  const names = group.slice(0, namesShown).map((e) => e.node);
  const more = group.length - names.length;
  return {
    time,
    kind,
    title: `${label}: ${group.length.toLocaleString("en-US")} pairs`,
    text: names.join(", ") + (more > 0 ? ` and ${more.toLocaleString("en-US")} more` : "") + (text ? `: ${text}` : ""),
    node: "",
    plugin,
    future: false,
  };
}
