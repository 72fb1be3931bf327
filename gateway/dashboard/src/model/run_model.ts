// One run as the watch stream tells it: a snapshot, then changes that are put into the Map in place.
import { Matrix } from "./matrix";
import { isFinal, factsOf, type Kind } from "./kinds";
import * as parse from "./parse";
import type { Pair, Status } from "./parse";
import type { WireWatch } from "./wire";

/** Something that was seen to change, and that the newest state does not show any more. */
export interface Seen {
  time: number;
  plugin: string;
  node: string;
  kind: Kind;
  text: string;
}

const mostSeen = 500;

export function keyOf(plugin: string, node: string): string {
  return `${plugin}/${node}`; // neither holds a slash
}

export class RunModel {
  status: Status | null = null;
  pairs = new Map<string, Pair>();
  matrix = new Matrix();
  /** A snapshot has arrived to its end. */
  complete = false;
  /** Of the newest message that holds; where to go on after a lost connection. */
  cursor = "";
  seen: Seen[] = [];
  /** Grows with every change. */
  version = 0;
  /** The server's clock minus the browser's, in milliseconds. */
  clockOffset = 0;

  // What a snapshot has brought so far. Until its end the pages go on showing what held before it.
  private arriving: Map<string, Pair> | null = null;

  /** Pairs of a snapshot that is not at its end. */
  get loading(): number {
    return this.arriving?.size ?? 0;
  }

  /** The server's clock. */
  now(at: number = Date.now()): number {
    return at + this.clockOffset;
  }

  /** Takes one message; `told` is when it came, by the browser's clock. */
  apply(message: WireWatch, told: number): void {
    this.version++;
    if (message.reset || (!this.complete && !this.arriving)) this.arriving = new Map();
    if (message.status) this.setStatus(parse.status(message.status, told), told);
    for (const wire of message.pairs ?? []) this.setPair(parse.pair(wire, told));
    if (!message.cursor) return;
    this.cursor = message.cursor;
    if (this.arriving) {
      this.pairs = this.arriving;
      this.arriving = null;
      this.matrix.rebuild(this.pairs.values());
      this.complete = true;
    }
  }

  /** Forgets the cursor: the next stream begins with a snapshot. */
  restart(): void {
    this.cursor = "";
    this.arriving = null;
  }

  setStatus(status: Status, told: number): void {
    this.status = status;
    if (status.time) this.clockOffset = status.time - told;
  }

  private setPair(pair: Pair): void {
    const key = keyOf(pair.plugin, pair.node);
    if (this.arriving) {
      this.arriving.set(key, pair);
      return;
    }
    const before = this.pairs.get(key);
    if (before) this.notice(before, pair);
    this.pairs.set(key, pair);
    this.matrix.set(pair);
  }

  // Trouble that is over shows nowhere else, so it is remembered while the page is open.
  private notice(before: Pair, after: Pair): void {
    if (before.kind === after.kind || !factsOf(before.kind).trouble) return;
    const { plugin, node } = after;
    const since = before.since || before.updated;
    if (since) this.seen.push({ time: since, plugin, node, kind: before.kind, text: before.error || before.detail });
    if (!factsOf(after.kind).trouble) {
      const time = (isFinal(after.kind) ? after.updated : after.since) || this.now(after.told);
      this.seen.push({ time, plugin, node, kind: after.kind, text: `was: ${factsOf(before.kind).label.toLowerCase()}` });
    }
    if (this.seen.length > mostSeen) this.seen.splice(0, this.seen.length - mostSeen);
  }
}
