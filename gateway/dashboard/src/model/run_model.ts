// One run as received from the watch stream: a snapshot, then changes that are applied in place.
import { Matrix } from "./matrix";
import { factsOf, type Kind } from "./kinds";
import * as parse from "./parse";
import { begin, type Pair, type Status } from "./parse";
import type { WireWatch } from "./wire";

/** A past state of a pair that the newest state does not show. */
export interface PastState {
  time: number;
  plugin: string;
  node: string;
  kind: Kind;
  text: string;
  /** If the state ended a trouble: the kind of the trouble. */
  before?: Kind;
}

const maxPastStates = 500;

export function keyOf(plugin: string, node: string): string {
  return `${plugin}/${node}`; // neither contains a slash
}

export class RunModel {
  status: Status | null = null;
  pairs = new Map<string, Pair>();
  matrix = new Matrix();
  /** True once a snapshot is complete. */
  complete = false;
  /** The cursor of the newest applied message, to resume from after a lost connection. */
  cursor = "";
  pastStates: PastState[] = [];
  /** Increments with every change. */
  version = 0;
  /** The server's clock minus the browser's, in milliseconds. */
  clockOffset = 0;

  // The pairs of an incomplete snapshot. The pages show the old pairs until it is complete.
  private arriving: Map<string, Pair> | null = null;

  /** The number of pairs of an incomplete snapshot. */
  get loading(): number {
    return this.arriving?.size ?? 0;
  }

  /** Returns the time of the server's clock. */
  now(at: number = Date.now()): number {
    return at + this.clockOffset;
  }

  /** Applies one message; `receivedAt` is the browser's time at its receipt. */
  apply(message: WireWatch, receivedAt: number): void {
    this.version++;
    if (message.reset || (!this.complete && !this.arriving)) this.arriving = new Map();
    if (message.status) this.setStatus(parse.status(message.status, receivedAt), receivedAt);
    for (const wire of message.pairs ?? []) this.setPair(parse.pair(wire, receivedAt));
    if (!message.cursor) return;
    this.cursor = message.cursor;
    if (this.arriving) {
      this.pairs = this.arriving;
      this.arriving = null;
      this.matrix.rebuild(this.pairs.values());
      this.complete = true;
    }
  }

  /** Drops the cursor: the next stream begins with a snapshot. */
  restart(): void {
    this.cursor = "";
    this.arriving = null;
  }

  setStatus(status: Status, receivedAt: number): void {
    this.status = status;
    if (status.time) this.clockOffset = status.time - receivedAt;
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

  // A state that needed attention is not visible anywhere else after it ended, so it is kept while the page is
  // open.
  private notice(before: Pair, after: Pair): void {
    if (before.kind === after.kind || !factsOf(before.kind).trouble) return;
    const { plugin, node } = after;
    const since = begin(before);
    if (since) this.pastStates.push({ time: since, plugin, node, kind: before.kind, text: before.error || before.detail });
    if (!factsOf(after.kind).trouble) {
      const time = begin(after) || this.now(after.receivedAt);
      this.pastStates.push({ time, plugin, node, kind: after.kind, text: `was: ${factsOf(before.kind).label.toLowerCase()}`, before: before.kind });
    }
    if (this.pastStates.length > maxPastStates) this.pastStates.splice(0, this.pastStates.length - maxPastStates);
  }
}
