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

test("the end of a run has its reason", () => {
  const m = run([], { state: "RUN_STATE_FAILED", stateReason: "no agent reported", endTime: at(300) });
  const [last] = timelineEvents(m, zero + 400_000, 100);
  assert.deepEqual([last!.title, last!.text], ["Run failed", "no agent reported"]);
});
