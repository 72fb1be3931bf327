import assert from "node:assert/strict";
import { test } from "node:test";
import { conformance } from "./conformance";

const report = (probes: unknown) => JSON.stringify({ version: 1, status: "fail", probes });

test("the failed probes come first, with what they measured and why", () => {
  const read = conformance({
    state: "CONFORMANCE_STATE_NO_BASELINE",
    type: "conformance@1.0.0",
    differences: [{ probe: "b" }],
    report: report([
      { id: "a", status: "pass", measured: "none", expected: "none" },
      { id: "b", status: "fail", measured: "0:0", text: "root", expected: "not root" },
      { id: "c", status: "skip", text: "one CPU" },
      { id: "d", status: "new" },
    ]),
  });
  assert.equal(read.state, "no-baseline");
  assert.deepEqual(read.differences, ["b"]);
  assert.deepEqual(read.probes.map((p) => `${p.status} ${p.id} ${p.expected} ${p.finding}`), [
    "fail b not root 0:0: root", "pass a none none", "skip c  one CPU", "unknown d  ",
  ]);
});

test("a damaged report has no probes", () => {
  for (const damaged of ["", "{", "[]", "null", report(7), report([null, 7])]) assert.deepEqual(conformance({ report: damaged }).probes, [], damaged);
  assert.equal(conformance({}).state, "unknown");
});
