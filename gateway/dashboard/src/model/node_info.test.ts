import assert from "node:assert/strict";
import { test } from "node:test";
import { nodeInfo } from "./node_info";

test("the information of a node is read", () => {
  const adapter = { name: "docker", version: "20.10.24", versionTime: "2026-01-02T03:04:05Z" };
  const wire = { children: [{ info: { version: "1.0.0", adapters: [adapter, { name: "process" }], freeBytes: "7", totalBytes: "9" } }] };
  assert.deepEqual(nodeInfo(wire), {
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

test("a node of an older program, or one that never attached, has none", () => {
  for (const wire of [{}, { children: null }, { children: [] }, { children: [{}] }, { children: [{ info: null }] }]) assert.equal(nodeInfo(wire), null);
});
