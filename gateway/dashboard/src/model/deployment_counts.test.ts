import assert from "node:assert/strict";
import { test } from "node:test";
import type { Fetch } from "./api";
import { deployment, type Deployment } from "./deployment";
import { DeploymentCounts } from "./deployment_counts";

const signal = new AbortController().signal;

// The root relay, behind the API. `answers` has the job of each id, or the status of an error.
class Relay {
  asked: string[] = [];
  answers = new Map<string, object | number>();

  fetch: Fetch = async (input) => {
    const job = String(input).split("/").at(-1)!;
    this.asked.push(job);
    const answer = this.answers.get(job) ?? 404;
    return typeof answer === "number" ? new Response("{}", { status: answer }) : new Response(JSON.stringify(answer));
  };
}

const failed = (id: string, more = {}): Deployment =>
  deployment({ deployment: id, job: `j${id}`, state: "DEPLOYMENT_STATE_FAILED", targets: "2", succeeded: "1", ...more });
const job = (lost: number) => ({
  targets: "2",
  succeeded: String(2 - lost),
  outcomes: [{ outcome: "JOB_OUTCOME_EXITED", count: String(2 - lost) }, ...(lost ? [{ outcome: "JOB_OUTCOME_TIMED_OUT", count: String(lost) }] : [])],
});

test("counts of an ended deployment are requested once", async () => {
  const relay = new Relay();
  const counts = new DeploymentCounts(relay.fetch);
  relay.answers.set("ja", job(1));
  const words = async () => (await counts.load([failed("a")], signal)).get("a")!.map(({ word, count }) => `${count} ${word}`);
  assert.deepEqual(await words(), ["1 succeeded", "1 timed out"]);
  assert.deepEqual(await words(), ["1 succeeded", "1 timed out"]);
  assert.deepEqual(relay.asked, ["ja"]);
});

test("counts are requested again after an error, but not after the job was removed", async () => {
  const relay = new Relay();
  const counts = new DeploymentCounts(relay.fetch);
  relay.answers.set("ja", 503);
  for (let i = 0; i < 2; i++) {
    const found = await counts.load([failed("a"), failed("gone")], signal);
    assert.deepEqual([found.get("a"), found.get("gone")], [null, null]);
  }
  relay.answers.set("ja", job(1));
  assert.equal((await counts.load([failed("a")], signal)).get("a")!.length, 2);
  assert.deepEqual(relay.asked, ["ja", "jgone", "ja", "ja"]);
});

test("counts are requested again after a late outcome", async () => {
  const relay = new Relay();
  const counts = new DeploymentCounts(relay.fetch);
  relay.answers.set("ja", job(1));
  await counts.load([failed("a")], signal);
  relay.answers.set("ja", job(0));
  const late = { lateTime: "2026-11-30T10:00:00Z" };
  for (const now of [failed("a", late), failed("a", { ...late, succeeded: "2" })]) {
    assert.deepEqual((await counts.load([now], signal)).get("a")!.map(({ word, count }) => `${count} ${word}`), ["2 succeeded"]);
  }
  assert.equal(relay.asked.length, 3);
});

test("counts of running deployments are requested each time, of at most 20 deployments", async () => {
  const relay = new Relay();
  const counts = new DeploymentCounts(relay.fetch);
  const running = Array.from({ length: 30 }, (_, i) => failed(`r${i}`, { state: "DEPLOYMENT_STATE_RUNNING" }));
  await counts.load([...running, failed("s", { state: "DEPLOYMENT_STATE_SUCCEEDED" })], signal);
  assert.equal(relay.asked.length, 20);
  await counts.load(running.slice(0, 1), signal);
  assert.equal(relay.asked.length, 21);
});
