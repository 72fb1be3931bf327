import assert from "node:assert/strict";
import { test } from "node:test";
import { deployment, nounOf, problemTitle } from "./deployment";
import { outcomeCounts, outcomeOf } from "./outcomes";

test("each outcome has its reason and its next step", () => {
  const failed = outcomeOf({ outcome: "JOB_OUTCOME_FAILED", reason: "OUTPUTS_INVALID", detail: "text is missing" }, true, false);
  assert.deepEqual([failed.kind, failed.word, failed.reason], ["failed", "failed", "OUTPUTS_INVALID: text is missing"]);
  assert.match(failed.next, /\/state\/outputs/);
  const refused = outcomeOf({ outcome: "JOB_OUTCOME_REFUSED", reason: "POLICY_REFUSED", detail: "no rule" }, false, false);
  assert.deepEqual([refused.kind, refused.word, refused.reason], ["failed", "refused", "POLICY_REFUSED: no rule"]);
  assert.match(refused.next, /the message names the line/);
  assert.match(outcomeOf({ outcome: "JOB_OUTCOME_UNREACHABLE" }, false, false).next, /muster node show/);
  const killed = outcomeOf({ outcome: "JOB_OUTCOME_EXITED", signal: 9 }, true, false);
  assert.deepEqual([killed.word, killed.reason], ["failed", "killed by signal SIGKILL (9)"]);
  assert.deepEqual(outcomeOf({ outcome: "JOB_OUTCOME_EXITED", detail: "output was lost" }, true, true), { kind: "succeeded", word: "succeeded", reason: "output was lost", next: "" });
  assert.equal(outcomeOf(null, true, false).kind, "running");
  assert.equal(outcomeOf(null, false, false).kind, "waiting");
  assert.equal(outcomeOf(null, true, true).word, "no outcome");
  assert.equal(outcomeOf(null, false, true, true).word, "not started");
});

test("an outcome has its own word, and is not called failed", () => {
  const shown = (outcome: string) => {
    const { kind, word, reason } = outcomeOf({ outcome: `JOB_OUTCOME_${outcome}`, detail: "why" }, true, true);
    return `${kind}, ${word}: ${reason}`;
  };
  assert.deepEqual(["CANCELLED", "TIMED_OUT", "UNKNOWN", "REFUSED", "LOST", "FAILED"].map(shown), [
    "cancelled, cancelled: why", "timed_out, timed out: why", "failed, unknown node: why", "failed, refused: why", "failed, lost: why", "failed, failed: why",
  ]);
});

test("a late outcome keeps the word of the earlier one", () => {
  const { nodes, late } = deployment({ state: "DEPLOYMENT_STATE_SUCCEEDED", lateTime: "2026-01-02T00:00:00Z", nodes: [{ node: "a", final: { outcome: "JOB_OUTCOME_EXITED" }, earlier: { outcome: "JOB_OUTCOME_TIMED_OUT" } }, { node: "b" }] });
  assert.deepEqual([late, ...nodes.map(({ node, earlier }) => `${node} ${earlier}`)], [Date.UTC(2026, 0, 2), "b ", "a timed out"]);
});

test("a build has its base, its repository, its source and its image", () => {
  const found = deployment({ action: "build", image: "r/base@sha256:0", build: { repository: "r/web", source: { kind: "zip", sha256: "ab" }, image: "r/web@sha256:1" } });
  assert.deepEqual(found.build, { repository: "r/web", source: { kind: "zip", sha256: "ab", url: "", commit: "", folder: "" }, image: "r/web@sha256:1" });
  assert.equal(found.image, "r/base@sha256:0");
  assert.equal(problemTitle("failed", nounOf(found)), "The build failed");
  assert.equal(nounOf(deployment({})), "deployment");
});

test("secrets are named with their versions, and a workspace says whether it gets a new version", () => {
  assert.deepEqual(deployment({ secrets: [{ name: "db", secret: "prod/db", version: "1" }] }).secrets, [{ name: "db", secret: "prod/db", version: 1 }]);
  const saves = (sha256?: string) => deployment({ workspace: { workspace: "w", version: "2", sha256: "AP8Q" }, nodes: [{ node: "a", workspace: sha256 ? { sha256 } : null }] }).workspace!.saves;
  assert.deepEqual([saves(), saves("AP8Q"), saves("AAAA")], [null, false, true]);
  const at = "2026-01-02T03:04:05Z";
  const deleted = deployment({ workspace: { workspace: "w" }, workspaceDeletion: { deletedBy: "spiffe://f/user/ann", deleteTime: at }, nodes: [{ node: "a", workspaceRefusedTime: at }] }).workspace!;
  assert.deepEqual([deleted.refused, deleted.deletion], [Date.parse(at), { by: "spiffe://f/user/ann", at: Date.parse(at) }]);
  assert.deepEqual([deployment({ workspace: { workspace: "w" } }).workspace!.refused, deployment({ workspace: { workspace: "w" } }).workspace!.deletion], [0, null]);
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
