import assert from "node:assert/strict";
import { test } from "node:test";
import { getPages } from "./api";
import { deleteCommand, nextStep, restorable, restoreCommand, workspace } from "./workspace";

const deployment = "d".repeat(32);

test("a workspace has its versions with sizes and digests", () => {
  const found = workspace({
    workspace: "net-a",
    state: "WORKSPACE_STATE_IN_USE",
    latest: "2",
    deployment,
    node: "n1",
    since: "2026-01-02T03:04:05Z",
    size: "3000",
    versions: [{ version: "2", sha256: "AP8Q", size: "1000", restoredFrom: "1", restoredBy: "spiffe://f/user/ann" }, { version: "1" }],
  });
  assert.equal(found.state, "in_use");
  assert.equal(found.since, Date.parse("2026-01-02T03:04:05Z"));
  assert.deepEqual([found.latest, found.size, found.versions[0]!.version, found.versions[0]!.size], [2, 3000, 2, 1000]);
  assert.equal(found.versions[0]!.sha256, "00ff10");
  assert.equal(found.versions[0]!.restoredFrom, 1);
  assert.equal(workspace({ state: "WORKSPACE_STATE_NEW" }).state, "unknown");
});

test("each state has its command, which names the deployment that has the workspace", () => {
  const of = (state: string) => nextStep(workspace({ workspace: "net-a", state: `WORKSPACE_STATE_${state}`, deployment, node: "n1" }));
  assert.equal(of("FREE"), null);
  assert.equal(of("IN_USE")!.command, `muster deployment cancel ${deployment}`);
  assert.equal(of("SAVING")!.command, `muster workspace unlock net-a --deployment ${deployment}`);
  assert.equal(of("SUSPECT")!.command, `muster workspace unlock net-a --deployment ${deployment}`);
  assert.match(of("SUSPECT")!.text, /If node n1 will not send its version/);
});

test("only older versions of a free workspace are restored", () => {
  const of = (state: string) => workspace({ workspace: "it's", state: `WORKSPACE_STATE_${state}`, latest: "3", versions: [{ version: "3" }, { version: "2" }, { version: "1" }] });
  assert.deepEqual(restorable(of("FREE")).map(({ version }) => version), [2, 1]);
  assert.deepEqual(restorable(of("SUSPECT")), []);
  assert.equal(restoreCommand(of("FREE").name, 2), `muster workspace restore 'it'\\''s' 2`);
});

test("a workspace is deleted unless a deployment has it, and without the version of a named deployment", () => {
  const of = (state: string) => deleteCommand(workspace({ workspace: "it's", state: `WORKSPACE_STATE_${state}`, deployment: state === "FREE" ? "" : deployment }));
  assert.equal(of("FREE"), `muster workspace delete 'it'\\''s'`);
  assert.equal(of("SAVING"), `muster workspace delete 'it'\\''s' --deployment ${deployment}`);
  assert.equal(of("SUSPECT"), of("SAVING"));
  assert.equal(of("IN_USE"), null);
  assert.equal(of("NEW"), null);
});

test("a list is read up to a number of pages", async () => {
  const asked: string[] = [];
  const fetcher = (async (path: string) => {
    asked.push(path);
    const last = path.includes("page_token=b%2F2");
    return new Response(JSON.stringify({ names: last ? ["c"] : ["a", "b"], nextPageToken: last ? "" : "b/2" }));
  }) as typeof fetch;
  const read = (pages: number) =>
    getPages("/api/v1/names", 2, pages, (page: { names?: string[]; nextPageToken?: string }) => page.names ?? [], new AbortController().signal, fetcher);
  assert.deepEqual(await read(1), { items: ["a", "b"], more: true });
  assert.deepEqual(await read(5), { items: ["a", "b", "c"], more: false });
  assert.deepEqual(asked.slice(1), ["/api/v1/names?page_size=2", "/api/v1/names?page_size=2&page_token=b%2F2"]);
});
