import assert from "node:assert/strict";
import { test } from "node:test";
import { attachment } from "./attachment";

test("the information of a node is read", () => {
  const adapter = { name: "docker", version: "20.10.24", versionTime: "2026-01-02T03:04:05Z" };
  const wire = { info: { version: "1.0.0", adapters: [adapter, { name: "process" }], freeBytes: "7", totalBytes: "9" } };
  assert.deepEqual(attachment(wire).info, {
    version: "1.0.0",
    adapters: [
      { name: "docker", version: "20.10.24", problem: "", since: Date.UTC(2026, 0, 2, 3, 4, 5) },
      { name: "process", version: "", problem: "", since: 0 },
    ],
    free: 7,
    total: 9,
    measured: 0,
  });
});

test("an attachment has its parent, its time and its tunnel", () => {
  const child = { name: "n1", relay: "r1", attached: true, changeTime: "2026-01-02T03:04:05Z", link: "tunnel", descendants: "2", duplicateAgentTime: "2026-01-02T03:04:05Z" };
  assert.deepEqual(attachment(child), { attached: true, relay: "r1", since: Date.UTC(2026, 0, 2, 3, 4, 5), link: "tunnel", descendants: 2, duplicate: true, info: null });
});

test("a name that never attached has neither a parent nor information", () => {
  for (const child of [undefined, null, {}, { info: null }]) {
    assert.deepEqual(attachment(child), { attached: false, relay: "", since: 0, link: "", descendants: 0, duplicate: false, info: null });
  }
});
