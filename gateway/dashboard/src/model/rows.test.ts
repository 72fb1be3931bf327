import assert from "node:assert/strict";
import { test } from "node:test";
import { pair as parsePair } from "./parse";
import { failures, lastHeartbeatOf, matching, notStarted, results, sort, stragglers } from "./rows";
import { RunModel } from "./run_model";
import type { WirePair } from "./wire";

const at = (second: number) => new Date(Date.UTC(2026, 0, 2, 10, 0, second)).toISOString();

function wire(node: string, reason: string, second: number, more: WirePair = {}): WirePair {
  return { plugin: "p", node, outcome: "OUTCOME_PENDING", reason: `REASON_${reason}`, reasonSince: at(second), ...more };
}

const nodes = (rows: { node: string }[]) => rows.map((r) => r.node).join(" ");

test("sort by reason: the worst first, then the longest, then by name", () => {
  const rows = [
    wire("n10", "SLOW", 1), wire("n9", "CRASHED", 9), wire("n2", "CRASHED", 3), wire("n1", "STUCK", 2), wire("n11", "SLOW", 1), wire("n3", "NETWORK_LOST", 0),
  ].map((w) => parsePair(w, 0));
  assert.equal(nodes(sort(rows, "reason", false)), "n2 n9 n3 n1 n10 n11");
  assert.equal(nodes(sort(rows, "node", false)), "n1 n2 n3 n9 n10 n11");
  assert.equal(nodes(sort(rows, "node", true)), "n11 n10 n9 n3 n2 n1");
  assert.equal(nodes(sort(rows, "since", false)), "n3 n10 n11 n1 n2 n9");
  assert.equal(rows[0]!.node, "n10"); // the input is unchanged
});

test("sort by heartbeat: pairs without heartbeats first", () => {
  const rows = [wire("a", "STUCK", 1, { heartbeatAge: "3s" }), wire("b", "STUCK", 1), wire("c", "STUCK", 1, { heartbeatAge: "40s" })].map((w) => parsePair(w, 100_000));
  assert.equal(nodes(sort(rows, "heartbeat", false)), "b c a");
  assert.equal(lastHeartbeatOf(rows[0]!), 97_000);
  assert.equal(lastHeartbeatOf(rows[1]!), 0);
});

test("stragglers are those of the service, in their newest state", () => {
  const m = new RunModel();
  const named = [wire("n1", "CRASHED", 5), wire("n2", "STUCK", 5), wire("n3", "STUCK", 5)];
  m.apply({ reset: true, cursor: "1", status: { stragglers: named }, pairs: [...named, wire("n4", "SLOW", 1)] }, 1000);
  assert.equal(nodes(stragglers(m)), "n1 n2 n3");
  m.apply({ cursor: "2", pairs: [wire("n2", "UNSPECIFIED", 0, { outcome: "OUTCOME_GENUINE" }), wire("n3", "NETWORK_LOST", 8)] }, 2000);
  assert.equal(nodes(stragglers(m)), "n1 n3");
  assert.equal(stragglers(m)[1]!.kind, "network_lost");
});

test("a pair that has not started has the reason and the next step", () => {
  const m = new RunModel();
  const deadline = new Date(Date.UTC(2026, 0, 2, 11)).toISOString();
  const status = { state: "RUN_STATE_RUNNING", deadline, time: at(0) };
  m.apply({ reset: true, cursor: "1", status, pairs: [wire("n1", "NOT_STARTED", 1), wire("n2", "RUNNING", 1)] }, Date.parse(at(0)));
  const rows = notStarted(m);
  assert.equal(nodes(rows), "n1");
  assert.equal(rows[0]!.detail, "no heartbeat was received yet");
  assert.match(rows[0]!.next, /^becomes timed out at .*\d\d:00.* unless its result arrives$/);
  m.apply({ cursor: "2", status: { ...status, state: "RUN_STATE_PLANNED", stateReason: "fails at 10:05:00 UTC unless an agent of its plan reports" } }, Date.parse(at(0)));
  assert.equal(notStarted(m)[0]!.next, "the run fails at 10:05:00 UTC unless an agent of its plan reports");
  m.apply({ cursor: "3", status: { ...status, deadline: null } }, Date.parse(at(0)));
  assert.equal(notStarted(m)[0]!.next, "stays pending");
});

test("failures and results are selected by outcome", () => {
  const m = new RunModel();
  const end = (node: string, outcome: string) => wire(node, "UNSPECIFIED", 0, { outcome: `OUTCOME_${outcome}` });
  m.apply({ reset: true, cursor: "1", pairs: [end("a", "GENUINE"), end("b", "ERROR"), end("c", "TIMED_OUT"), wire("d", "RUNNING", 1)] }, 0);
  assert.equal(nodes(failures(m)), "b c");
  assert.equal(nodes(results(m)), "a");
});

test("a filter matches rows with all of its words in any column", () => {
  const rows = [wire("north-1", "STUCK", 1, { detail: "no progress" }), wire("north-2", "CRASHED", 1)].map((w) => parsePair(w, 0));
  assert.equal(nodes([...matching(rows, "NORTH progress")]), "north-1");
  assert.equal(nodes([...matching(rows, "crashed")]), "north-2");
  assert.equal(matching(rows, "  ").length, 2);
});
