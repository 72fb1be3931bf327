// The outcome of a deployment on one node, in the words of the command line.
import { nextSteps } from "./next_steps";
import { number, text } from "./parse";
import type { WireFinal, WireJob } from "./wire";

export type OutcomeKind = "succeeded" | "failed" | "timed_out" | "cancelled" | "running" | "waiting" | "unknown";

export interface Outcome {
  kind: OutcomeKind;
  /** The outcome, such as "refused" or "timed out". */
  word: string;
  /** Why it failed, or a remark of the node; may be empty. */
  reason: string;
  /** What to do next; empty if it succeeded. */
  next: string;
}

const signals: Record<number, string> = { 1: "HUP", 2: "INT", 3: "QUIT", 4: "ILL", 6: "ABRT", 7: "BUS", 8: "FPE", 9: "KILL", 11: "SEGV", 13: "PIPE", 15: "TERM" };

/** "timed out" of "JOB_OUTCOME_TIMED_OUT". */
export function outcomeWord(outcome: string | undefined): string {
  if (outcome === "JOB_OUTCOME_UNKNOWN") return "unknown node";
  return (outcome ?? "").replace("JOB_OUTCOME_", "").replaceAll("_", " ").toLowerCase() || "unknown";
}

/** Returns the word of an outcome: a command that did not exit with 0 has failed. */
function wordOf(final: WireFinal): string {
  if (final.outcome !== "JOB_OUTCOME_EXITED") return outcomeWord(final.outcome);
  return final.signal || final.exitCode ? "failed" : "succeeded";
}

/** Returns the outcome of a command with its reason; empty if it exited with 0. */
export function failureText(final: WireFinal): string {
  const word = wordOf(final);
  return word === "succeeded" ? "" : [word, reasonOf(final)].filter(Boolean).join(": ");
}

// Returns why a command failed, or the remark of the node about its success.
function reasonOf(final: WireFinal): string {
  const detail = text(final.detail);
  if (final.outcome === "JOB_OUTCOME_EXITED") {
    if (final.signal) return `killed by signal ${signals[final.signal] ? `SIG${signals[final.signal]} ` : ""}(${final.signal})`;
    return final.exitCode ? `exit code ${final.exitCode}${detail && `: ${detail}`}` : detail;
  }
  return [text(final.reason), detail].filter(Boolean).join(": ");
}

function kindOf(outcome: string | undefined): OutcomeKind {
  if (outcome === "JOB_OUTCOME_TIMED_OUT") return "timed_out";
  return outcome === "JOB_OUTCOME_CANCELLED" ? "cancelled" : "failed";
}

/** Returns the outcome of a node. `ended` and `neverSent` are those of the whole deployment. */
export function outcomeOf(final: WireFinal | null | undefined, started: boolean, ended: boolean, neverSent = false): Outcome {
  if (!final) {
    if (neverSent) return { kind: "waiting", word: "not started", reason: "", next: "" };
    if (ended) return { kind: "unknown", word: "no outcome", reason: "the root relay has none of this node", next: "" };
    const kind = started ? "running" : "waiting";
    return { kind, word: kind, reason: "", next: "" };
  }
  const word = wordOf(final);
  const reason = reasonOf(final);
  if (word === "succeeded") return { kind: "succeeded", word, reason, next: "" };
  const next = nextSteps.get(final.reason ?? "") ?? nextSteps.get(final.outcome ?? "") ?? "";
  return { kind: kindOf(final.outcome), word, reason, next };
}

export interface OutcomeCount {
  kind: OutcomeKind;
  word: string;
  count: number;
}

/** Returns the nodes of a job by outcome, without zeros: the successes first, and last those that have not ended. */
export function outcomeCounts(job: WireJob): OutcomeCount[] {
  const succeeded = number(job.succeeded);
  const counts: OutcomeCount[] = [{ kind: "succeeded", word: "succeeded", count: succeeded }];
  let done = 0;
  let failed = 0; // it did not start, or did not exit with 0
  const others: OutcomeCount[] = [];
  for (const each of job.outcomes ?? []) {
    const all = number(each.count);
    done += all;
    if (each.outcome === "JOB_OUTCOME_EXITED") failed += all - succeeded;
    else if (each.outcome === "JOB_OUTCOME_FAILED") failed += all;
    else others.push({ kind: kindOf(each.outcome), word: outcomeWord(each.outcome), count: all });
  }
  counts.push({ kind: "failed", word: "failed", count: failed }, ...others);
  const running = number(job.running);
  counts.push({ kind: "running", word: "running", count: running });
  counts.push({ kind: "waiting", word: "waiting", count: number(job.targets) - done - running });
  return counts.filter(({ count }) => count > 0);
}
