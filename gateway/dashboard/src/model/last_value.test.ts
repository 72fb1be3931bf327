import assert from "node:assert/strict";
import { test } from "node:test";
import { LastValue } from "./last_value";

test("the last value stays until other data is requested", () => {
  const last = new LastValue<string>();
  assert.equal(last.next("nodes/all", null), null);
  assert.equal(last.next("nodes/all", "a"), "a");
  assert.equal(last.next("nodes/all", null), "a"); // more pages are requested
  assert.equal(last.next("nodes/lost", null), null);
  assert.equal(last.next("nodes/all", null), null);
  assert.equal(last.next("nodes/lost", "b"), "b");
  assert.equal(last.next("nodes/lost", null), "b");
});
