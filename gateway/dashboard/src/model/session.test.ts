import assert from "node:assert/strict";
import { test } from "node:test";
import { getJSON, Problem } from "./api";
import { onSession, refused } from "./session";

test("a response without a session is known to the whole page until a request is answered", async () => {
  let changes = 0;
  const stop = onSession(() => changes++);
  const ask = (status: number) => getJSON("/x", new AbortController().signal, async () => new Response("{}", { status }));
  await ask(200);
  assert.deepEqual([refused(), changes], [null, 0]);
  await assert.rejects(ask(401), Problem);
  await assert.rejects(ask(401), Problem);
  assert.deepEqual([refused()?.status, changes], [401, 1]);
  await assert.rejects(ask(503), Problem); // says nothing about the session
  assert.deepEqual([refused()?.status, changes], [401, 1]);
  await ask(200);
  assert.deepEqual([refused(), changes], [null, 2]);
  stop();
  await assert.rejects(ask(401), Problem);
  assert.equal(changes, 2);
  await ask(200);
});
