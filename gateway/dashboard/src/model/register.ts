// The nodes of the fleet: the register of the aggregator, joined with the heartbeats that the status service knows, and with
// the attachments that the root relay knows. All lists are ordered by name.
import { Problem, path } from "./api";
import { attachment, type Attachment } from "./attachment";
import { node as parseNode, text, time, type Node } from "./parse";
import type { WireAttached, WireChild, WireEnrolled, WireNode } from "./wire";

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
  /** A Problem: the root relay did not answer. */
  attachment: Attachment | Problem;
}

/**
 * "": all; "ATTACHED" and "NOT_ATTACHED": those of the register; a word of Presence; "NONE": joined nodes without heartbeats;
 * "NOT_JOINED": names that have not joined.
 */
export type Choice = "" | "ATTACHED" | "NOT_ATTACHED" | "ONLINE" | "LATE" | "SUSPECT" | "LOST" | "OFFLINE" | "UNKNOWN" | "NONE" | "NOT_JOINED";

const maxPage = 1000;

type Rest = Omit<Member, "node">;

/** What the other lists said of names, and until when it counts: a presence is polled more often than they change. */
export type Known = Map<string, Rest & { until: number }>;

const knownFor = 30_000; // milliseconds
const maxKnown = 10_000;

/** Returns whether the choice may need the lists as a whole: the register cannot be asked for names without heartbeats. */
export function readsAll(choice: Choice): boolean {
  return ["ATTACHED", "NOT_ATTACHED", "NONE", "NOT_JOINED"].includes(choice);
}

/** Returns the first `limit` members of the choice, and whether there are more. */
export async function members(choice: Choice, limit: number, ask: Ask, now: number, known: Known = new Map()): Promise<{ members: Member[]; more: boolean }> {
  return choice === "" || readsAll(choice) ? merged(choice, limit, ask, now) : present(choice, limit, ask, now, known);
}

// The members with a presence. Asks the register and the root relay for the returned names alone.
async function present(presence: string, limit: number, ask: Ask, now: number, known: Known): Promise<{ members: Member[]; more: boolean }> {
  const statuses = statusesOf({ presence: `PRESENCE_${presence}` }, Math.min(limit + 1, maxPage), ask);
  const found: WireNode[] = [];
  for (let status = await statuses.first(); status && found.length <= limit; status = await statuses.first()) {
    found.push(status.item);
    statuses.drop();
  }
  const nodes = found.slice(0, limit).map((wire) => parseNode(wire, now));
  const rests = await Promise.all(nodes.map(({ node }) => restOf(node, ask, now, known)));
  return { members: nodes.map((node, i) => ({ node, ...rests[i]! })), more: found.length > limit };
}

async function restOf(name: string, ask: Ask, now: number, known: Known): Promise<Rest> {
  const last = known.get(name);
  if (last && now < last.until) return { joined: last.joined, attachment: last.attachment };
  const [entry, attachment] = await Promise.all([unlessMissing(ask<WireEnrolled>(path`/enrollment/nodes/${name}`)), attachmentOf(name, ask)]);
  const fresh = { joined: entry instanceof Problem ? null : joined(entry), attachment };
  if (known.size >= maxKnown) known.clear();
  if (!(attachment instanceof Problem)) known.set(name, { ...fresh, until: now + knownFor });
  return fresh;
}

async function attachmentOf(name: string, ask: Ask): Promise<Attachment | Problem> {
  return orProblem(ask<WireAttached>(path`/attached?name=${name}`).then((answer) => attachment(answer.children?.[0])));
}

const maxWait = 3000; // milliseconds for the root relay: without its answer, the page shows what the others know

async function orProblem<T>(answer: Promise<T>): Promise<T | Problem> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<Problem>((resolve) => {
    timer = setTimeout(() => resolve(new Problem("the root relay did not respond in time", 0, "UNREACHABLE", "")), maxWait);
  });
  try {
    return await Promise.race([answer, late]);
  } catch (error) {
    if (error instanceof Problem) return error;
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

// The attachments of names that are requested in their order.
class Attachments {
  private readonly children: Cursor<WireChild>;
  private problem: Problem | null = null;

  constructor(query: Record<string, string>, size: number, ask: Ask) {
    this.children = new Cursor<WireChild>("/api/v1/attached", query, size, (wire) => wire.name ?? "", ask);
  }

  async of(name: string): Promise<Attachment | Problem> {
    let child = await this.first();
    for (; child && !(child instanceof Problem) && child.name < name; child = await this.first()) this.children.drop();
    if (child instanceof Problem) return child;
    return attachment(child?.name === name ? child.item : null);
  }

  /** Returns the next entry; undefined: there is none. */
  async first(): Promise<{ name: string; item: WireChild } | undefined | Problem> {
    if (this.problem) return this.problem;
    const found = await orProblem(this.children.first());
    if (found instanceof Problem) this.problem = found;
    return found;
  }
}

function statusesOf(query: Record<string, string>, size: number, ask: Ask): Cursor<WireNode> {
  return new Cursor<WireNode>("/api/v1/nodes", query, size, (wire) => wire.node ?? "", ask);
}

// The members of a choice by all lists.
async function merged(choice: Choice, limit: number, ask: Ask, now: number): Promise<{ members: Member[]; more: boolean }> {
  const size = choice === "" ? Math.min(limit + 1, maxPage) : maxPage;
  const statuses = statusesOf({}, size, ask);
  const register = new Cursor<WireEnrolled>("/api/v1/enrollment/nodes", {}, size, (wire) => wire.name ?? "", ask);
  const attachments = new Attachments(choice === "ATTACHED" ? { attached_only: "true" } : {}, size, ask);
  const found: Member[] = [];
  for (;;) {
    const [status, entry, child] = await Promise.all([statuses.first(), register.first(), attachments.first()]);
    if (child instanceof Problem && (choice === "ATTACHED" || choice === "NOT_ATTACHED")) throw child;
    if (isOver(choice, Boolean(status), Boolean(entry), Boolean(child))) return { members: found, more: false };
    const isStatus = status !== undefined && (!entry || status.name <= entry.name);
    const isEntry = entry !== undefined && (!status || entry.name <= status.name);
    if (isStatus) statuses.drop();
    if (isEntry) register.drop();
    const node = parseNode(isStatus ? status.item : { node: entry!.name }, now);
    const member = { node, joined: isEntry ? joined(entry.item) : null, attachment: await attachments.of(node.node) };
    if (!isOf(choice, member)) continue;
    if (found.length === limit) return { members: found, more: true };
    found.push(member);
  }
}

// Returns whether no member of the choice can follow.
function isOver(choice: Choice, hasStatus: boolean, hasEntry: boolean, hasAttachment: boolean): boolean {
  switch (choice) {
    case "":
      return !hasStatus && !hasEntry;
    case "ATTACHED":
      return !hasEntry || !hasAttachment;
    case "NOT_ATTACHED":
    case "NONE":
      return !hasEntry;
    default:
      return !hasStatus;
  }
}

function isOf(choice: Choice, { node, joined, attachment }: Member): boolean {
  switch (choice) {
    case "ATTACHED":
      return joined !== null && isAttached(attachment);
    case "NOT_ATTACHED":
      return joined !== null && !isAttached(attachment);
    case "NONE":
      return joined !== null && !joined.relay && !hasHeartbeats(node);
    case "NOT_JOINED":
      return joined === null;
    default:
      return true;
  }
}

export function isAttached(attachment: Attachment | Problem): attachment is Attachment {
  return !(attachment instanceof Problem) && attachment.attached;
}

export function hasHeartbeats(node: Node): boolean {
  return node.presence !== "" && node.presence !== "PRESENCE_UNSPECIFIED";
}

/** Returns whether the services know of two processes with the identity of the node. */
export function hasDuplicate({ node, attachment }: Member): boolean {
  return node.duplicateAgent || (!(attachment instanceof Problem) && attachment.duplicate);
}

/** Returns one node. A joined node is found even if the status service does not know it. */
export async function member(name: string, ask: Ask, now: number): Promise<Member> {
  const [status, entry, attachment] = await Promise.all([
    unlessMissing(ask<WireNode>(path`/nodes/${name}`)),
    unlessMissing(ask<WireEnrolled>(path`/enrollment/nodes/${name}`)),
    attachmentOf(name, ask),
  ]);
  if (status instanceof Problem && entry instanceof Problem) throw status;
  return {
    node: parseNode(status instanceof Problem ? { node: name } : status, now),
    joined: entry instanceof Problem ? null : joined(entry),
    attachment,
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
      const page = await this.ask<{ nodes?: T[] | null; children?: T[] | null; nextPageToken?: string }>(`${this.list}?${query}`);
      this.items = (page.nodes ?? page.children ?? []).map((item) => ({ name: text(this.nameOf(item)), item }));
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
