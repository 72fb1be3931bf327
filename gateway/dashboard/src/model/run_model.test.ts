import assert from "node:assert/strict";
import { test } from "node:test";
import { indexOf } from "./kinds";
import { noPair } from "./matrix";
import { keyOf, RunModel } from "./run_model";
import type { WirePair, WireWatch } from "./wire";

const at = (second: number) => new Date(Date.UTC(2026, 0, 2, 10, 0, second)).toISOString();

function pair(plugin: string, node: string, more: WirePair = {}): WirePair {
  return { plugin, node, outcome: "OUTCOME_PENDING", reason: "REASON_RUNNING", reasonSince: at(1), ...more };
}

function model(...messages: WireWatch[]): RunModel {
  const result = new RunModel();
  for (const message of messages) result.apply(message, Date.parse(at(30)));
  return result;
}

test("a snapshot applies with its last message, which has a cursor", () => {
  const m = model({ reset: true, status: { run: "r" }, pairs: [pair("p", "n1")] });
  assert.equal(m.complete, false);
  assert.equal(m.pairs.size, 0);
  assert.equal(m.loading, 1);
  m.apply({ cursor: "e.1", pairs: [pair("p", "n2")] }, 0);
  assert.equal(m.complete, true);
  assert.deepEqual([...m.pairs.keys()], [keyOf("p", "n1"), keyOf("p", "n2")]);
  assert.equal(m.cursor, "e.1");
});

test("a change replaces its pair in place", () => {
  const m = model({ cursor: "1", reset: true, pairs: [pair("p", "n1"), pair("p", "n2")] });
  const map = m.pairs;
  m.apply({ cursor: "2", pairs: [pair("p", "n2", { outcome: "OUTCOME_GENUINE", size: "12" })] }, 0);
  assert.equal(m.pairs, map);
  assert.equal(m.pairs.size, 2);
  assert.equal(m.pairs.get(keyOf("p", "n2"))!.kind, "genuine");
  assert.equal(m.pairs.get(keyOf("p", "n2"))!.size, 12);
  assert.equal(m.pairs.get(keyOf("p", "n1"))!.kind, "running");
  assert.equal(m.matrix.tally[indexOf("genuine")], 1);
  assert.equal(m.matrix.tally[indexOf("running")], 1);
});

test("the old pairs remain until a new snapshot is complete, and are then dropped", () => {
  const m = model({ cursor: "1", reset: true, pairs: [pair("p", "n1"), pair("p", "gone")] });
  m.apply({ reset: true, pairs: [pair("p", "n1", { outcome: "OUTCOME_ERROR" })] }, 0);
  assert.equal(m.pairs.size, 2);
  assert.equal(m.pairs.get(keyOf("p", "n1"))!.kind, "running");
  m.apply({ cursor: "9", pairs: [] }, 0);
  assert.deepEqual([...m.pairs.keys()], [keyOf("p", "n1")]);
  assert.equal(m.pairs.get(keyOf("p", "n1"))!.kind, "error");
  assert.equal(m.matrix.columnOf("gone"), undefined);
});

test("a message without a status keeps the previous status", () => {
  const m = model({ cursor: "1", reset: true, status: { run: "r", state: "RUN_STATE_RUNNING" } }, { cursor: "2", status: null });
  assert.equal(m.status!.state, "running");
});

test("a pair of an unknown node extends the matrix", () => {
  const m = model({ cursor: "1", reset: true, pairs: [pair("p", "n1")] });
  m.apply({ cursor: "2", pairs: [pair("q", "n2")] }, 0);
  const { matrix } = m;
  assert.equal(matrix.kindAt(matrix.rowOf("q")!, matrix.columnOf("n2")!), indexOf("running"));
  assert.equal(matrix.kindAt(matrix.rowOf("p")!, matrix.columnOf("n2")!), noPair);
});

test("a state that needed attention is kept after it ended", () => {
  const m = model({ cursor: "1", reset: true, pairs: [pair("p", "n1", { reason: "REASON_CRASHED", reasonSince: at(5), detail: "closed" })] });
  m.apply({ cursor: "2", pairs: [pair("p", "n1", { reasonSince: at(9) })] }, 0);
  assert.deepEqual(
    m.pastStates.map((s) => [s.kind, new Date(s.time).toISOString(), s.text]),
    [
      ["crashed", at(5), "closed"],
      ["running", at(9), "was: crashed"],
    ],
  );
});

test("the number of past states is limited", () => {
  const m = model({ cursor: "1", reset: true, pairs: [pair("p", "n1")] });
  for (let n = 0; n < 2000; n++) m.apply({ cursor: "x", pairs: [pair("p", "n1", { reason: n % 2 ? "REASON_RUNNING" : "REASON_STUCK" })] }, 0);
  assert.ok(m.pastStates.length <= 500);
});

test("the clock offset comes from the status", () => {
  const m = new RunModel();
  m.apply({ cursor: "1", reset: true, status: { time: at(30) } }, Date.parse(at(20)));
  assert.equal(m.now(Date.parse(at(21))), Date.parse(at(31)));
});

test("100,000 pairs", () => {
  const m = new RunModel();
  for (let first = 0; first < 100_000; first += 2000) {
    const pairs = Array.from({ length: 2000 }, (_, n) => pair(`p${(first + n) % 10}`, `n${Math.floor((first + n) / 10)}`));
    m.apply({ reset: first === 0, cursor: first === 98_000 ? "1" : "", pairs }, 0);
  }
  assert.equal(m.pairs.size, 100_000);
  assert.equal(m.matrix.nodes.length, 10_000);
  assert.equal(m.matrix.nodes[10], "n10"); // not n1000
  assert.equal(m.matrix.tally[indexOf("running")], 100_000);
});
