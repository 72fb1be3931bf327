import assert from "node:assert/strict";
import { test } from "node:test";
import { deployment, problemTitle } from "./deployment";
import { outcomeCounts, outcomeOf } from "./outcomes";

test("each outcome has its reason and its next step", () => {
  const failed = outcomeOf({ outcome: "JOB_OUTCOME_FAILED", reason: "OUTPUTS_INVALID", detail: "text is missing" }, true, false);
  assert.equal(failed.reason, "OUTPUTS_INVALID: text is missing");
  assert.match(failed.next, /\/state\/outputs/);
  const refused = outcomeOf({ outcome: "JOB_OUTCOME_REFUSED", reason: "POLICY_REFUSED", detail: "no rule" }, false, false);
  assert.equal(refused.reason, "refused: POLICY_REFUSED: no rule");
  assert.match(refused.next, /the message names the line/);
  assert.match(outcomeOf({ outcome: "JOB_OUTCOME_UNREACHABLE" }, false, false).next, /muster node show/);
  assert.equal(outcomeOf({ outcome: "JOB_OUTCOME_EXITED", signal: 9 }, true, false).reason, "killed by signal SIGKILL (9)");
  assert.deepEqual(outcomeOf({ outcome: "JOB_OUTCOME_EXITED", detail: "output was lost" }, true, true), { kind: "succeeded", reason: "output was lost", next: "" });
  assert.equal(outcomeOf(null, true, false).kind, "running");
  assert.equal(outcomeOf(null, false, false).kind, "waiting");
  assert.equal(outcomeOf(null, true, true).kind, "unknown");
});

test("nodes are counted by outcome, and the others are waiting", () => {
  const counts = outcomeCounts({ targets: "10", running: "2", succeeded: "3", outcomes: [{ outcome: "JOB_OUTCOME_EXITED", count: "4" }, { outcome: "JOB_OUTCOME_TIMED_OUT", count: "1" }] });
  assert.deepEqual(counts.map(({ word, count }) => `${count} ${word}`), ["3 succeeded", "1 failed", "1 timed out", "2 running", "3 waiting"]);
});

test("the failed nodes are first", () => {
  const final = (exitCode: number) => ({ outcome: "JOB_OUTCOME_EXITED", exitCode, recordsVerified: true });
  const found = deployment({ state: "DEPLOYMENT_STATE_RUNNING", nodes: [{ node: "a", final: final(0) }, { node: "b" }, { node: "d", final: final(1) }, { node: "c", final: final(1) }] });
  assert.deepEqual(found.nodes.map(({ node }) => node), ["c", "d", "b", "a"]);
  assert.equal(deployment({ state: "DEPLOYMENT_STATE_NEW" }).state, "unknown");
});

test("the title of a problem says the state of the deployment", () => {
  const title = (state: string) => problemTitle(deployment({ state: `DEPLOYMENT_STATE_${state}` }).state);
  assert.equal(title("PENDING"), "The deployment is pending");
  assert.match(title("RUNNING"), /is running/); // a cancellation is repeated
  assert.equal(title("FAILED"), "The deployment failed");
  assert.match(title("CANCELLED"), /was cancelled/);
  assert.match(title("SUCCEEDED"), /succeeded/);
});

test("digests of files are shown in hexadecimal", () => {
  assert.equal(deployment({ files: [{ path: "x", sha256: "AP8Q" }] }).files[0]!.sha256, "00ff10");
});

test("deployments that retry or destroy each other are named", () => {
  const found = deployment({ retryOf: "aa", destroyedBy: [{ deployment: "bb", state: "DEPLOYMENT_STATE_SUCCEEDED" }] });
  assert.deepEqual(found.related, [
    { relation: "retries", id: "aa", state: "" },
    { relation: "destroyed by", id: "bb", state: "succeeded" },
  ]);
});
