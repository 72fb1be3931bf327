import assert from "node:assert/strict";
import { test } from "node:test";
import { JobLog, shown } from "./job_log";
import type { WireRecord } from "./wire";

const output = (data: string | Buffer, node = "n1", stream = "STDOUT"): WireRecord => ({ node, sequence: "1", output: { stream: `JOB_STREAM_${stream}`, data: Buffer.from(data).toString("base64") } });

function log(...records: WireRecord[]): JobLog {
  const result = new JobLog("j", "");
  for (const record of records) result.receive({ records: [record], position: "7" });
  return result;
}

const texts = (from: JobLog) => from.lines.map((line) => `${line.node} ${line.stream}: ${shown(line)}`);

test("lines are assembled from pieces of each node and stream", () => {
  const bytes = Buffer.from("ü\n");
  const found = log(output("a"), output("x\n", "n2"), output("b\n\nc", "n1"), output("e\n", "n1", "STDERR"), output(bytes.subarray(0, 1)), output(bytes.subarray(1)), output("\n"));
  assert.deepEqual(texts(found), ["n1 stdout: ab", "n2 stdout: x", "n1 stdout: ", "n1 stdout: cü", "n1 stderr: e", "n1 stdout: "]);
});

test("sequences of terminals are removed, and other control characters shown", () => {
  assert.deepEqual(texts(log(output("\u001b[1;31mred\u001b[0m\r\nbell\u0007 \u202e\n"))), ["n1 stdout: red", "n1 stdout: bell\ufffd \ufffd"]);
});

test("a long line is continued, and only the newest lines are kept", () => {
  assert.deepEqual(log(output("x".repeat(4500))).lines.map((line) => line.text.length), [2000, 2000, 500]);
  const found = log(output(Array.from({ length: 5000 }, (_, n) => `${n}\n`).join("")));
  assert.equal(found.lines.at(-1)!.text, "4999");
  assert.ok(found.lines.length <= 2000);
  assert.equal(found.dropped + found.lines.length, 5000);
});

test("failures, omitted and changed output have a note", () => {
  const found = log(
    { node: "n1", sequence: "3", cut: { bytes: "2048" } },
    { node: "n1", sequence: "4", final: { outcome: "JOB_OUTCOME_EXITED", exitCode: 3 } },
    { node: "n2", sequence: "0", final: { outcome: "JOB_OUTCOME_UNKNOWN" } },
    { node: "n3", sequence: "1", final: { outcome: "JOB_OUTCOME_EXITED", recordsVerified: true } },
  );
  assert.deepEqual(texts(found), [
    "n1 note: [2 KiB of output omitted]", "n1 note: the output is not what the node signed; it may have been changed or lost in transit", "n1 note: failed: exit code 3", "n2 note: unknown node",
  ]);
});

test("relays are unreachable until they are back", () => {
  const found = log({ branch: { relay: "r1", lost: true, detail: "relay r1 is lost" } });
  assert.deepEqual(found.unreachable, ["relay r1 is lost"]);
  found.receive({ records: [{ branch: { relay: "r1", lost: false, detail: "relay r1 is back" } }] });
  assert.deepEqual(found.unreachable, []);
});

test("the stream is resumed after the last message", () => {
  const found = new JobLog("a b", "n1");
  assert.equal(found.path(), "/api/v1/jobs/a%20b:watch?nodes=n1");
  found.receive({ records: [], position: "12", job: { state: "JOB_STATE_RUNNING" } });
  assert.equal(found.path(), "/api/v1/jobs/a%20b:watch?position=12&nodes=n1");
  found.receive({ position: "14", complete: true });
  assert.equal(found.ended, true);
});

test("a state or bytes that the stream has not delivered need another stream, once", async () => {
  const found = log(output("abc"));
  found.receive({ job: { state: "JOB_STATE_RUNNING" } });
  const asks = (state: string, outputBytes: string) =>
    found.isCurrent(new AbortController().signal, (async () => new Response(JSON.stringify({ state: `JOB_STATE_${state}`, outputBytes }))) as typeof fetch);
  assert.equal(await asks("RUNNING", "3"), true);
  assert.equal(await asks("RUNNING", "9"), false);
  assert.equal(await asks("RUNNING", "9"), true);
  assert.equal(await asks("ENDED", "9"), false);
});
