import assert from "node:assert/strict";
import { test } from "node:test";
import { readLines } from "./lines";
import { RunModel } from "./run_model";
import { RunStream } from "./run_stream";
import { Watcher, type Options } from "./watch";

function stream(...pieces: (string | Uint8Array)[]): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    start(controller) {
      for (const piece of pieces) controller.enqueue(typeof piece === "string" ? encoder.encode(piece) : piece);
      controller.close();
    },
  });
}

const line = (result: unknown) => JSON.stringify({ result }) + "\n";
const snapshot = line({ reset: true, cursor: "e.1", status: { run: "r", state: "RUN_STATE_RUNNING", counts: { planned: "1", pending: "1" } }, pairs: [{ plugin: "p", node: "n", outcome: "OUTCOME_PENDING" }] });
const ending = line({ cursor: "e.2", status: { run: "r", state: "RUN_STATE_COMPLETE", counts: { planned: "1", pending: "0" } }, pairs: [{ plugin: "p", node: "n", outcome: "OUTCOME_GENUINE" }] });

/** Follows with these responses, one for each request of the stream, until the link satisfies `until`. */
async function follow(answers: (() => Response)[], until: (w: Watcher) => boolean, options: Options = {}): Promise<{ watcher: Watcher; model: RunModel; asked: string[] }> {
  const asked: string[] = [];
  const model = new RunModel();
  const fetcher = (async (path: string) => {
    asked.push(path);
    if (!path.includes(":watch")) throw new TypeError("down");
    const answer = answers.shift();
    if (!answer) throw new TypeError("down");
    return answer();
  }) as typeof fetch;
  return new Promise((resolve) => {
    const watcher: Watcher = new Watcher(new RunStream("r", model), () => {
      if (!until(watcher)) return;
      queueMicrotask(() => {
        watcher.stop();
        resolve({ watcher, model, asked });
      });
    }, { fetch: fetcher, firstWait: 1, longestWait: 2, ...options });
    watcher.start();
  });
}

test("lines are assembled from any pieces, also of a split character", async () => {
  const bytes = new TextEncoder().encode('{"a":"ü"}\n{"a":2}\n\n{"a":3}');
  const got: unknown[] = [];
  await readLines(stream(bytes.slice(0, 7), bytes.slice(7, 12), bytes.slice(12)), (value) => got.push(value));
  assert.deepEqual(got, [{ a: "ü" }, { a: 2 }, { a: 3 }]);
});

test("a line that is not JSON ends the stream with an error", async () => {
  await assert.rejects(readLines(stream('{"a":1}\n<html>\n'), () => undefined));
});

test("the watcher ends with the run", async () => {
  const { watcher, model } = await follow([() => new Response(stream(snapshot, ending))], (w) => w.link.state === "ended");
  assert.equal(watcher.link.state, "ended");
  assert.equal(model.status!.state, "complete");
  assert.equal(model.pairs.get("p/n")!.kind, "genuine");
});

test("a lost connection is resumed from the cursor and shown as stale meanwhile", async () => {
  const states: string[] = [];
  const { asked } = await follow([() => new Response(stream(snapshot)), () => new Response(stream(ending))], (w) => {
    if (states.at(-1) !== w.link.state) states.push(w.link.state);
    if (w.link.state === "stale") assert.ok(w.link.lastUpdate > 0);
    return w.link.state === "ended";
  });
  const streams = asked.filter((path) => path.includes(":watch"));
  assert.deepEqual(streams, ["/api/v1/runs/r/status:watch", "/api/v1/runs/r/status:watch?cursor=e.1"]);
  assert.deepEqual(states, ["live", "stale", "live", "ended"]);
});

test("the end of the stream does not end an unfinished run", async () => {
  const { watcher } = await follow([() => new Response(stream(snapshot))], (w) => w.link.state === "stale");
  assert.equal(watcher.link.state, "stale");
});

test("a rejected cursor is dropped", async () => {
  const refuse = () => new Response(JSON.stringify({ message: "no such cursor", reason: "INVALID_CURSOR", next_step: "" }), { status: 400 });
  const { asked } = await follow([() => new Response(stream(snapshot)), refuse, () => new Response(stream(snapshot, ending))], (w) => w.link.state === "ended");
  assert.equal(asked.filter((path) => path.includes(":watch")).at(-1), "/api/v1/runs/r/status:watch");
});

test("a permanent error is shown once with the server's text", async () => {
  const refuse = () => new Response(JSON.stringify({ message: "the session is over", reason: "UNAUTHENTICATED", next_step: "Run muster dashboard." }), { status: 401 });
  const { watcher, asked } = await follow([refuse], (w) => w.link.state === "refused");
  assert.equal(asked.length, 1);
  assert.ok(watcher.link.state === "refused" && watcher.link.problem.nextStep === "Run muster dashboard.");
});

test("an unknown run is retried, then refused", async () => {
  const unknown = () => new Response(JSON.stringify({ message: "there is no run r", reason: "RUN_NOT_FOUND" }), { status: 404 });
  const { model } = await follow([unknown, unknown, () => new Response(stream(snapshot, ending))], (w) => w.link.state === "ended");
  assert.equal(model.complete, true);
  const { asked } = await follow(Array(10).fill(unknown), (w) => w.link.state === "refused");
  assert.equal(asked.length, 5);
});

test("an error inside the stream is reported", async () => {
  const error = JSON.stringify({ error: { code: 5, message: "the run was deleted", details: [{ reason: "RUN_NOT_FOUND" }] } }) + "\n";
  const { watcher } = await follow([() => new Response(stream(snapshot, error))], (w) => w.link.state === "refused");
  assert.ok(watcher.link.state === "refused" && watcher.link.problem.message === "the run was deleted");
});

test("a silent stream is closed if the server does not respond", async () => {
  const silent = () => new Response(new ReadableStream({ start: (c) => c.enqueue(new TextEncoder().encode(snapshot)) }));
  let streams = 0;
  const counted = () => (streams++, silent());
  await follow([counted, counted], () => streams === 2, { quiet: 20 });
  assert.equal(streams, 2);
});
