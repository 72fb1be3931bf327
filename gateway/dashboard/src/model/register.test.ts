import assert from "node:assert/strict";
import { test } from "node:test";
import { Problem } from "./api";
import { member, members, type Ask, type Choice, type Known } from "./register";
import type { WireEnrolled, WireNode } from "./wire";

const register: WireEnrolled[] = [
  { name: "n1", joinTime: "2026-01-02T10:00:00Z" }, { name: "n2" }, { name: "n9" }, { name: "r1", isRelay: true }, { name: "z", revoked: true },
];
const statuses: WireNode[] = [
  { node: "credential", presence: "PRESENCE_ONLINE" }, { node: "ld1", presence: "PRESENCE_UNSPECIFIED" },
  { node: "n1", presence: "PRESENCE_ONLINE" }, { node: "n2", presence: "PRESENCE_LOST" },
];

// Pages have at most two entries, whatever is requested; the token is the last name.
function fleet(asked: string[] = []): Ask {
  const page = (items: { name: string; item: unknown }[], token: string) => {
    const left = items.filter(({ name }) => name > token);
    return { nodes: left.slice(0, 2).map(({ item }) => item), nextPageToken: left.length > 2 ? left[1]!.name : "" };
  };
  return async <T>(path: string) => {
    asked.push(path);
    const url = new URL(path, "https://host");
    const presence = url.searchParams.get("presence");
    const token = url.searchParams.get("page_token") ?? "";
    const enrolled = register.map((item) => ({ name: item.name!, item }));
    const heard = statuses.filter((s) => !presence || s.presence === presence).map((item) => ({ name: item.node!, item }));
    if (url.pathname === "/api/v1/enrollment/nodes") return page(enrolled, token) as T;
    if (url.pathname === "/api/v1/nodes") return page(heard, token) as T;
    const known = url.pathname.startsWith("/api/v1/enrollment/") ? enrolled : heard;
    const one = known.find(({ name }) => name === url.pathname.split("/").at(-1));
    if (!one) throw new Problem("not found", 404, "NODE_NOT_FOUND", "");
    return one.item as T;
  };
}

async function names(choice: Choice, limit = 100): Promise<string> {
  const { members: found, more } = await members(choice, limit, fleet(), 0);
  return found.map(({ node, joined }) => node.node + (joined ? "" : "?")).join(" ") + (more ? " ..." : "");
}

test("the list has the register and the other names of plans and heartbeats", async () => {
  assert.equal(await names(""), "credential? ld1? n1 n2 n9 r1 z");
});

test("a presence selects nodes, and marks those that have not joined", async () => {
  assert.equal(await names("ONLINE"), "credential? n1");
  assert.equal(await names("LOST"), "n2");
  assert.equal(await names("SUSPECT"), "");
});

test("a presence does not read the register beyond the shown names, nor soon again", async () => {
  const asked: string[] = [];
  const known: Known = new Map();
  const registered = async (now: number) => {
    asked.length = 0;
    const { members: found, more } = await members("ONLINE", 1, fleet(asked), now, known);
    assert.deepEqual(found.map(({ node, joined }) => [node.node, joined]), [["credential", null]]);
    assert.equal(more, true);
    assert.equal(asked.filter((path) => path.startsWith("/api/v1/nodes?")).length, 1);
    return asked.filter((path) => path.startsWith("/api/v1/enrollment/"));
  };
  assert.deepEqual(await registered(0), ["/api/v1/enrollment/nodes/credential"]);
  assert.deepEqual(await registered(5_000), []);
  assert.deepEqual(await registered(30_000), ["/api/v1/enrollment/nodes/credential"]);
});

test("joined nodes without heartbeats, and names that have not joined, have their own choices", async () => {
  assert.equal(await names("NONE"), "n9 z");
  assert.equal(await names("NOT_JOINED"), "credential? ld1?");
});

test("a limit leaves more", async () => {
  assert.equal(await names("", 3), "credential? ld1? n1 ...");
  assert.equal(await names("", 7), "credential? ld1? n1 n2 n9 r1 z");
  assert.equal(await names("NONE", 1), "n9 ...");
});

test("one node is found in the register, the status, or both", async () => {
  const n1 = await member("n1", fleet(), 0);
  assert.equal(n1.node.presence, "PRESENCE_ONLINE");
  assert.equal(n1.joined!.at, Date.UTC(2026, 0, 2, 10));
  const n9 = await member("n9", fleet(), 0);
  assert.equal(n9.node.node, "n9");
  assert.equal(n9.node.presence, "");
  assert.ok(n9.joined);
  assert.equal((await member("ld1", fleet(), 0)).joined, null);
  await assert.rejects(member("other", fleet(), 0), (error) => error instanceof Problem && error.status === 404);
});
