import assert from "node:assert/strict";
import { test } from "node:test";
import { Problem } from "./api";
import { hasDuplicate, isAttached, member, members, type Ask, type Choice, type Known, type Member } from "./register";
import type { WireChild, WireEnrolled, WireNode } from "./wire";

const register: WireEnrolled[] = [
  { name: "n1", joinTime: "2026-01-02T10:00:00Z" }, { name: "n2" }, { name: "n9" }, { name: "r1", isRelay: true }, { name: "z", revoked: true },
];
const statuses: WireNode[] = [
  { node: "credential", presence: "PRESENCE_ONLINE" }, { node: "ld1", presence: "PRESENCE_UNSPECIFIED" },
  { node: "n1", presence: "PRESENCE_ONLINE" }, { node: "n2", presence: "PRESENCE_LOST" },
];

const children: WireChild[] = [
  { name: "a", relay: "root", attached: true }, { name: "n1", relay: "r1", attached: true }, { name: "n2", relay: "r1", attached: false, duplicateAgentTime: "2026-01-02T10:00:00Z" },
  { name: "r1", relay: "root", attached: true },
];

// Pages have at most two entries, whatever is requested; the token is the last name.
function fleet(asked: string[] = []): Ask {
  const page = (items: { name: string; item: unknown }[], token: string, list = "nodes") => {
    const left = items.filter(({ name }) => name > token);
    return { [list]: left.slice(0, 2).map(({ item }) => item), nextPageToken: left.length > 2 ? left[1]!.name : "" };
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
    const only = url.searchParams.get("attached_only") === "true";
    const name = url.searchParams.get("name");
    const below = children.filter((child) => (!only || child.attached) && (!name || child.name === name)).map((item) => ({ name: item.name!, item }));
    if (url.pathname === "/api/v1/attached") return page(below, token, "children") as T;
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
    assert.ok(asked.every((path) => !path.startsWith("/api/v1/attached") || path === "/api/v1/attached?name=credential"));
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

test("each name has its attachment, and the attached ones have their own choices", async () => {
  const { members: found } = await members("", 100, fleet(), 0);
  const shown = ({ node, attachment }: Member) => `${node.node} ${isAttached(attachment) ? attachment.relay : "no"}`;
  assert.deepEqual(found.map(shown), ["credential no", "ld1 no", "n1 r1", "n2 no", "n9 no", "r1 root", "z no"]);
  assert.deepEqual(found.filter(hasDuplicate).map(({ node }) => node.node), ["n2"]);
  assert.equal(await names("ATTACHED"), "n1 r1");
  assert.equal(await names("ATTACHED", 1), "n1 ...");
  assert.equal(await names("NOT_ATTACHED"), "n2 n9 z");
  const lost = (await members("LOST", 100, fleet(), 0)).members[0]!.attachment;
  assert.ok(!(lost instanceof Problem) && lost.relay === "r1" && !lost.attached);
});

test("a root relay that does not answer hides no node", async () => {
  const broken: Ask = async (path) => {
    if (path.startsWith("/api/v1/attached")) throw new Problem("unreachable", 503, "UNREACHABLE", "");
    return fleet()(path);
  };
  for (const choice of ["", "LOST", "NONE"] as const) {
    const { members: found } = await members(choice, 100, broken, 0);
    assert.ok(found.length > 0 && found.every(({ attachment }) => attachment instanceof Problem), choice);
  }
  assert.ok((await member("n1", broken, 0)).attachment instanceof Problem);
  for (const choice of ["ATTACHED", "NOT_ATTACHED"] as const) await assert.rejects(members(choice, 100, broken, 0), Problem);
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
