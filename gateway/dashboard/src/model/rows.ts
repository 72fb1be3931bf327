// The rows of the tables of pairs.
import { factsOf, isFinal } from "./kinds";
import type { Pair } from "./parse";
import { keyOf, type RunModel } from "./run_model";

export type Column = "reason" | "plugin" | "node" | "since" | "heartbeat" | "size";

/** Those that need a look, as the service names them, each as it was last told. */
export function stragglers(model: RunModel): Pair[] {
  const rows: Pair[] = [];
  for (const told of model.status?.stragglers ?? []) {
    const newest = model.pairs.get(keyOf(told.plugin, told.node));
    const pair = newest && newest.told > told.told ? newest : told;
    if (!isFinal(pair.kind)) rows.push(pair);
  }
  return rows;
}

/** Those that ended without the plugin's own result. */
export function failures(model: RunModel): Pair[] {
  const rows: Pair[] = [];
  for (const pair of model.pairs.values()) {
    if (pair.kind === "error" || pair.kind === "timed_out") rows.push(pair);
  }
  return rows;
}

/** Those whose result can be fetched. */
export function results(model: RunModel): Pair[] {
  const rows: Pair[] = [];
  for (const pair of model.pairs.values()) {
    if (pair.kind === "genuine") rows.push(pair);
  }
  return rows;
}

/** A sorted copy. Equal rows stand by plugin and node, so that nothing jumps when it is drawn again. */
export function sort(rows: readonly Pair[], by: Column, descending: boolean): Pair[] {
  const turn = descending ? -1 : 1;
  return [...rows].sort((a, b) => turn * compare(a, b, by) || text(a.plugin, b.plugin) || text(a.node, b.node));
}

function compare(a: Pair, b: Pair, by: Column): number {
  switch (by) {
    case "reason": // the worst first; of the same, who has been at it longest
      return factsOf(a.kind).severity - factsOf(b.kind).severity || begin(a) - begin(b);
    case "plugin":
      return text(a.plugin, b.plugin);
    case "node":
      return text(a.node, b.node);
    case "since":
      return begin(a) - begin(b);
    case "heartbeat":
      return lastBeat(a) - lastBeat(b);
    case "size":
      return a.size - b.size;
  }
}

/** When it got into its state. */
export function begin(pair: Pair): number {
  return isFinal(pair.kind) ? pair.updated || pair.since : pair.since || pair.updated;
}

/** By the browser's clock; 0: never. */
export function lastBeat(pair: Pair): number {
  return pair.age < 0 ? 0 : pair.told - pair.age * 1000;
}

const names = new Intl.Collator("en", { numeric: true });

function text(a: string, b: string): number {
  return names.compare(a, b);
}

/** Rows that have all words in one of their texts. */
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
