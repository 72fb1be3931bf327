// The nodes of the fleet: the register of the aggregator, joined with the heartbeats that the status service knows. Both
// lists are ordered by name.
import { Problem, path } from "./api";
import { node as parseNode, text, time, type Node } from "./parse";
import type { WireEnrolled, WireNode } from "./wire";

/** Returns the response of a GET. */
export type Ask = <T>(path: string) => Promise<T>;

/** An entry of the register. */
export interface Joined {
  at: number;
  relay: boolean;
  revoked: boolean;
}

export interface Member {
  node: Node;
  /** Null: the name has not joined. A plan names it, or it delivers with a credential of a run. */
  joined: Joined | null;
}

/** "": all; a word of Presence; "NONE": joined nodes without heartbeats; "NOT_JOINED": names that have not joined. */
export type Choice = "" | "ONLINE" | "LATE" | "SUSPECT" | "LOST" | "OFFLINE" | "UNKNOWN" | "NONE" | "NOT_JOINED";

const maxPage = 1000;

/** What the register said of names, and until when it counts: a choice is polled more often than the register changes. */
export type Known = Map<string, { joined: Joined | null; until: number }>;

const knownFor = 30_000; // milliseconds
const maxKnown = 10_000;

/** Returns whether the choice needs both lists as a whole: the register cannot be asked for names without heartbeats. */
export function readsAll(choice: Choice): boolean {
  return choice === "NONE" || choice === "NOT_JOINED";
}

/** Returns the first `limit` members of the choice, and whether there are more. */
export async function members(choice: Choice, limit: number, ask: Ask, now: number, known: Known = new Map()): Promise<{ members: Member[]; more: boolean }> {
  return choice === "" || readsAll(choice) ? merged(choice, limit, ask, now) : present(choice, limit, ask, now, known);
}

// The members with a presence. Asks the register for the returned names alone.
async function present(presence: string, limit: number, ask: Ask, now: number, known: Known): Promise<{ members: Member[]; more: boolean }> {
  const statuses = statusesOf({ presence: `PRESENCE_${presence}` }, Math.min(limit + 1, maxPage), ask);
  const found: WireNode[] = [];
  for (let status = await statuses.first(); status && found.length <= limit; status = await statuses.first()) {
    found.push(status.item);
    statuses.drop();
  }
  const nodes = found.slice(0, limit).map((wire) => parseNode(wire, now));
  const joins = await Promise.all(nodes.map(({ node }) => joinOf(node, ask, now, known)));
  return { members: nodes.map((node, i) => ({ node, joined: joins[i]! })), more: found.length > limit };
}

async function joinOf(name: string, ask: Ask, now: number, known: Known): Promise<Joined | null> {
  const last = known.get(name);
  if (last && now < last.until) return last.joined;
  const entry = await unlessMissing(ask<WireEnrolled>(path`/enrollment/nodes/${name}`));
  const fresh = { joined: entry instanceof Problem ? null : joined(entry), until: now + knownFor };
  if (known.size >= maxKnown) known.clear();
  known.set(name, fresh);
  return fresh.joined;
}

function statusesOf(query: Record<string, string>, size: number, ask: Ask): Cursor<WireNode> {
  return new Cursor<WireNode>("/api/v1/nodes", query, size, (wire) => wire.node ?? "", ask);
}

// The members of a choice by both lists.
async function merged(choice: Choice, limit: number, ask: Ask, now: number): Promise<{ members: Member[]; more: boolean }> {
  const size = choice === "" ? Math.min(limit + 1, maxPage) : maxPage;
  const statuses = statusesOf({}, size, ask);
  const register = new Cursor<WireEnrolled>("/api/v1/enrollment/nodes", {}, size, (wire) => wire.name ?? "", ask);
  const found: Member[] = [];
  for (;;) {
    const [status, entry] = await Promise.all([statuses.first(), register.first()]);
    const over = choice === "" ? !status && !entry : choice === "NONE" ? !entry : !status;
    if (over) return { members: found, more: false };
    const isStatus = status !== undefined && (!entry || status.name <= entry.name);
    const isEntry = entry !== undefined && (!status || entry.name <= status.name);
    if (isStatus) statuses.drop();
    if (isEntry) register.drop();
    const member = {
      node: parseNode(isStatus ? status.item : { node: entry!.name }, now),
      joined: isEntry ? joined(entry.item) : null,
    };
    if (!isOf(choice, member)) continue;
    if (found.length === limit) return { members: found, more: true };
    found.push(member);
  }
}

function isOf(choice: Choice, { node, joined }: Member): boolean {
  switch (choice) {
    case "NONE":
      return joined !== null && !joined.relay && !hasHeartbeats(node);
    case "NOT_JOINED":
      return joined === null;
    default:
      return true;
  }
}

export function hasHeartbeats(node: Node): boolean {
  return node.presence !== "" && node.presence !== "PRESENCE_UNSPECIFIED";
}

/** Returns one node. A joined node is found even if the status service does not know it. */
export async function member(name: string, ask: Ask, now: number): Promise<Member> {
  const [status, entry] = await Promise.all([
    unlessMissing(ask<WireNode>(path`/nodes/${name}`)),
    unlessMissing(ask<WireEnrolled>(path`/enrollment/nodes/${name}`)),
  ]);
  if (status instanceof Problem && entry instanceof Problem) throw status;
  return {
    node: parseNode(status instanceof Problem ? { node: name } : status, now),
    joined: entry instanceof Problem ? null : joined(entry),
  };
}

function unlessMissing<T>(answer: Promise<T>): Promise<T | Problem> {
  return answer.catch((error) => {
    if (error instanceof Problem && error.status === 404) return error;
    throw error;
  });
}

function joined(wire: WireEnrolled): Joined {
  return { at: time(wire.joinTime), relay: wire.isRelay ?? false, revoked: wire.revoked ?? false };
}

// Reads a list in pages.
class Cursor<T> {
  private items: { name: string; item: T }[] = [];
  private position = 0;
  private token = "";
  private ended = false;

  constructor(
    private readonly list: string,
    private readonly query: Record<string, string>,
    private readonly size: number,
    private readonly nameOf: (item: T) => string,
    private readonly ask: Ask,
  ) {}

  async first(): Promise<{ name: string; item: T } | undefined> {
    while (this.position === this.items.length && !this.ended) {
      const query = new URLSearchParams({ ...this.query, page_size: String(this.size), ...(this.token && { page_token: this.token }) });
      const page = await this.ask<{ nodes?: T[] | null; nextPageToken?: string }>(`${this.list}?${query}`);
      this.items = (page.nodes ?? []).map((item) => ({ name: text(this.nameOf(item)), item }));
      this.position = 0;
      this.token = page.nextPageToken ?? "";
      this.ended = !this.token;
    }
    return this.items[this.position];
  }

  drop(): void {
    this.position++;
  }
}
