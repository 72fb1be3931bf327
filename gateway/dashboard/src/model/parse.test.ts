import assert from "node:assert/strict";
import { test } from "node:test";
import { kindOf, kindOfReason } from "./kinds";
import * as parse from "./parse";

test("missing and null fields have defaults", () => {
  const p = parse.pair({}, 7);
  assert.deepEqual([p.kind, p.size, p.updated, p.age, p.progress, p.fault, p.receivedAt], ["pending", 0, 0, -1, null, null, 7]);
  const s = parse.status({ plugins: null, counts: null, estimate: null, stragglers: null, doubt: "" }, 0);
  assert.deepEqual([s.state, s.plugins, s.counts.planned, s.estimate, s.stragglers], ["unknown", [], 0, null, []]);
  assert.deepEqual(parse.node({}, 0).events, []);
});

test("damage and the pin of a run are read", () => {
  assert.deepEqual([parse.run({}).damaged, parse.run({}).pinned, parse.status({}, 0).damaged], [0, false, 0]);
  const r = parse.run({ damagedResults: "3", pinned: true });
  assert.deepEqual([r.damaged, r.pinned, parse.status({ damagedResults: "3" }, 0).damaged], [3, true, 3]);
});

test("64-bit numbers are strings; an invalid number is 0", () => {
  assert.equal(parse.counts({ planned: "100000", errors: 3 }).planned, 100000);
  assert.equal(parse.number("x"), 0);
  assert.equal(parse.number(undefined), 0);
});

test("durations and times", () => {
  assert.equal(parse.seconds("42.250s"), 42.25);
  assert.equal(parse.seconds("0s"), 0);
  assert.equal(parse.seconds(null), null);
  assert.equal(parse.seconds("soon"), null);
  assert.equal(parse.time("1970-01-01T00:00:01.000000001Z"), 1000);
  assert.equal(parse.time("never"), 0);
});

test("the kind is the outcome's, or the reason's while it is pending", () => {
  assert.equal(kindOf("OUTCOME_TIMED_OUT", "REASON_TIMED_OUT"), "timed_out");
  assert.equal(kindOf("OUTCOME_GENUINE", "REASON_UNSPECIFIED"), "genuine");
  assert.equal(kindOf("OUTCOME_PENDING", "REASON_NETWORK_LOST"), "network_lost");
  assert.equal(kindOf("OUTCOME_PENDING", "REASON_RUN_ENDED"), "no_outcome");
  assert.equal(kindOf("OUTCOME_PENDING", "REASON_OF_A_LATER_VERSION"), "pending"); // not guessed
  assert.equal(kindOfReason(undefined), "pending");
  assert.equal(kindOfReason("constructor"), "pending");
});

test("an estimate needs both ends", () => {
  assert.equal(parse.status({ estimate: { earliest: "2026-01-01T00:00:00Z", latest: null } }, 0).estimate, null);
});

test("control and bidirectional characters are removed", () => {
  assert.equal(parse.text("a\u0000b\u001b[2Jc\u202egpj.exe"), "a\ufffdb\ufffd[2Jc\ufffdgpj.exe");
  assert.equal(parse.text("two\nlines\tand <b>"), "two\nlines\tand <b>"); // the framework escapes markup
});
