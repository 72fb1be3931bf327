import assert from "node:assert/strict";
import { test } from "node:test";
import { RunModel } from "./run_model";
import { growth, timelineEvents } from "./timeline";
import type { WirePair, WireStatus } from "./wire";

const zero = Date.UTC(2026, 0, 2, 10, 0, 0);
const at = (second: number) => new Date(zero + second * 1000).toISOString();

function run(pairs: WirePair[], status: WireStatus = {}): RunModel {
  const m = new RunModel();
  m.apply({ reset: true, cursor: "1", status: { state: "RUN_STATE_RUNNING", createTime: at(0), deadline: at(3600), ...status }, pairs }, 0);
  return m;
}

const ended = (node: string, outcome: string, second: number): WirePair => ({ plugin: "p", node, outcome: `OUTCOME_${outcome}`, updateTime: at(second), error: outcome === "ERROR" ? "no journal" : "" });

test("growth accumulates outcomes over time", () => {
  const m = run([ended("a", "GENUINE", 10), ended("b", "GENUINE", 50), ended("c", "ERROR", 95), { plugin: "p", node: "d", outcome: "OUTCOME_PENDING" }]);
  const g = growth(m, 10, zero + 100_000)!;
  assert.deepEqual(g.genuine, [0, 1, 1, 1, 1, 2, 2, 2, 2, 2]);
  assert.deepEqual(g.errors, [0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
  assert.equal(g.planned, 4);
});

test("growth of an ended run ends with the run", () => {
  const m = run([ended("a", "GENUINE", 10)], { state: "RUN_STATE_COMPLETE", endTime: at(20) });
  assert.equal(growth(m, 4, zero + 9_000_000)!.end, zero + 20_000);
});

test("growth is null before the snapshot is complete", () => {
  const m = new RunModel();
  m.apply({ reset: true, status: { createTime: at(0) }, pairs: [ended("a", "GENUINE", 10)] }, 0);
  assert.equal(growth(m, 10, zero + 1000), null);
});

test("events are sorted newest first, future ones before", () => {
  const m = run([ended("a", "GENUINE", 10), ended("b", "ERROR", 30), { plugin: "p", node: "c", outcome: "OUTCOME_PENDING", reason: "REASON_CRASHED", reasonSince: at(40) }]);
  const events = timelineEvents(m, zero + 100_000, 100);
  assert.deepEqual(events.map((e) => e.title), ["Deadline", "Crashed", "Error", "First result", "Run created"]);
  assert.equal(events[0]!.future, true);
  assert.deepEqual([events[2]!.node, events[2]!.text], ["b", "no journal"]);
});

test("simultaneous events of one kind are merged", () => {
  const m = run(Array.from({ length: 1500 }, (_, n) => ended(`n${n}`, "ERROR", 30 + (n % 5))));
  const events = timelineEvents(m, zero + 100_000, 100).filter((e) => e.kind === "error");
  assert.equal(events.length, 1);
  assert.match(events[0]!.title, /1,500/);
  assert.match(events[0]!.text, /and 1,497 more/);
});

test("merged events name the reason of each pair", () => {
  const failed = (node: string, error: string): WirePair => ({ ...ended(node, "ERROR", 30), error });
  const textOf = (...pairs: WirePair[]) => timelineEvents(run(pairs), zero + 100_000, 100).find((e) => e.kind === "error")!.text;
  assert.equal(
    textOf(failed("n1", "PLUGIN_FAILED: exit code 1"), failed("n3", "POLICY_REFUSED: no rule"), failed("n4", "PLUGIN_FAILED: exit code 2")),
    "n1, n4: PLUGIN_FAILED; n3: POLICY_REFUSED",
  );
  assert.equal(textOf(failed("n1", "no journal"), failed("n2", "no journal")), "n1, n2: no journal");
  assert.equal(textOf(failed("n1", "a"), failed("n2", "b"), failed("n3", "c"), failed("n4", "d")), "n1, n2, n3 and 1 more");
});

test("the end of a run has its reason", () => {
  const m = run([], { state: "RUN_STATE_FAILED", stateReason: "no agent reported", endTime: at(300) });
  const [last] = timelineEvents(m, zero + 400_000, 100);
  assert.deepEqual([last!.title, last!.text], ["Run failed", "no agent reported"]);
});

test("outcomes without a known time are counted, not drawn", () => {
  const m = run([ended("a", "GENUINE", 10), { plugin: "p", node: "b", outcome: "OUTCOME_GENUINE" }]);
  const g = growth(m, 4, zero + 40_000)!;
  assert.deepEqual(g.genuine, [0, 1, 1, 1]);
  assert.equal(g.timeless, 1);
});

test("a pair without an outcome in an ended run is no outcome", () => {
  const m = run([{ plugin: "p", node: "a", outcome: "OUTCOME_PENDING", reason: "REASON_RUN_ENDED", reasonSince: at(20), updateTime: at(20) }], { state: "RUN_STATE_CANCELLED", endTime: at(20) });
  assert.deepEqual(growth(m, 2, zero + 40_000)!.timedOut, [0, 0]);
  assert.deepEqual(timelineEvents(m, zero + 40_000, 100).map((e) => e.title), ["Run cancelled", "Run created"]);
});

const pending = (node: string, reason: string, second: number): WirePair => ({
  plugin: "p", node, outcome: "OUTCOME_PENDING", reason: `REASON_${reason}`, reasonSince: at(second), updateTime: at(second), detail: reason.toLowerCase(),
});

// The phases of pairs as the timeline lists them, the oldest first.
function phases(m: RunModel): [string, string, string][] {
  return timelineEvents(m, zero + 100_000, 100)
    .filter((e) => e.kind !== null)
    .map((e): [string, string, string] => [e.title, e.node, e.text])
    .reverse();
}

test("an agent that was stopped and continued has both phases, apart from others that return", () => {
  const m = run([pending("stopped", "RUNNING", 1), pending("killed", "RUNNING", 1)]);
  m.apply({ cursor: "2", pairs: [pending("stopped", "NOT_RESPONDING", 20), pending("killed", "CRASHED", 21)] }, 0);
  m.apply({ cursor: "3", pairs: [pending("stopped", "RUNNING", 40), pending("killed", "RUNNING", 41)] }, 0);
  assert.deepEqual(phases(m), [
    ["Not responding", "stopped", "not_responding"],
    ["Crashed", "killed", "crashed"],
    ["Running", "stopped", "was: not responding"],
    ["Running", "killed", "was: crashed"],
  ]);
});

test("an agent that is stopped twice within the merge time has four phases", () => {
  const m = run([pending("n1", "RUNNING", 1)]);
  ["NOT_RESPONDING", "RUNNING", "NOT_RESPONDING", "RUNNING"].forEach((reason, n) => m.apply({ cursor: `${n}`, pairs: [pending("n1", reason, 20 + n)] }, 0));
  assert.deepEqual(phases(m).map(([title]) => title), ["Not responding", "Running", "Not responding", "Running"]);
});

test("a time-out that a result replaced keeps the time of the outcome", () => {
  const m = run([pending("n1", "NOT_RESPONDING", 20)]);
  m.apply({ cursor: "2", pairs: [{ ...ended("n1", "TIMED_OUT", 30), reason: "REASON_TIMED_OUT", reasonSince: at(33) }] }, 0);
  m.apply({ cursor: "3", pairs: [ended("n1", "GENUINE", 50)] }, 0);
  assert.deepEqual(
    timelineEvents(m, zero + 100_000, 100).filter((e) => e.kind !== null).map((e) => [e.title, e.time - zero]).reverse(),
    [["Not responding", 20_000], ["Timed out", 30_000], ["Genuine", 50_000]],
  );
});
