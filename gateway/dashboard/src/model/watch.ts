// Follows a run by the watch stream, reconnects, and records since when the data is stale.
import { get, getJSON, path, Problem, type Fetch } from "./api";
import { readLines } from "./lines";
import { isEnded, status as parseStatus } from "./parse";
import type { RunModel } from "./run_model";
import type { WireStatus, WireWatch } from "./wire";

export type Link =
  | { state: "connecting" }
  | { state: "live" }
  /** The data is of `lastUpdate`; the next attempt is at `retryAt`. Both by the browser's clock. */
  | { state: "stale"; lastUpdate: number; retryAt: number; problem: Problem }
  /** The run has ended and all changes were received. */
  | { state: "ended" }
  /** A retry would not help. */
  | { state: "refused"; lastUpdate: number; problem: Problem };

const maxNotFoundAttempts = 4; // attempts

export interface Options {
  fetch?: Fetch;
  /** Milliseconds without a message after which the status is requested separately. */
  quiet?: number;
  /** Milliseconds of the shortest and the longest back-off. */
  firstWait?: number;
  longestWait?: number;
}

export class Watcher {
  link: Link = { state: "connecting" };

  private readonly fetch: Fetch;
  private readonly quiet: number;
  private readonly firstWait: number;
  private readonly longestWait: number;
  private stopped = new AbortController();
  private attempts = 0;
  private lastUpdate = 0;
  private wake: (() => void) | null = null;

  /** `changed` is called after each change of the model or the link. It is called often and must be cheap. */
  constructor(
    readonly run: string,
    readonly model: RunModel,
    private readonly changed: () => void,
    options: Options = {},
  ) {
    this.fetch = options.fetch ?? ((...args) => fetch(...args));
    this.quiet = options.quiet ?? 10_000;
    this.firstWait = options.firstWait ?? 500;
    this.longestWait = options.longestWait ?? 30_000;
  }

  start(): void {
    void this.follow();
  }

  stop(): void {
    this.stopped.abort();
    this.wake?.();
  }

  /** Retries without waiting for the next attempt. */
  retryNow(): void {
    this.attempts = 0;
    this.wake?.();
  }

  private async follow(): Promise<void> {
    while (!this.stopped.signal.aborted) {
      const problem = await this.stream();
      if (this.stopped.signal.aborted) return;
      if (problem === null) {
        this.set({ state: "ended" });
        return;
      }
      if (this.isPermanent(problem)) {
        this.set({ state: "refused", lastUpdate: this.lastUpdate, problem });
        return;
      }
      if (problem.reason === "INVALID_CURSOR") this.model.restart();
      const wait = this.wait(problem);
      this.set({ state: "stale", lastUpdate: this.lastUpdate, retryAt: Date.now() + wait, problem });
      await this.pause(wait);
    }
  }

  // Runs one connection to its end. Returns null when the run has ended and all changes were received,
  // otherwise the error.
  private async stream(): Promise<Problem | null> {
    const connection = new AbortController();
    const stop = () => connection.abort();
    this.stopped.signal.addEventListener("abort", stop);
    const guard = setInterval(() => void this.probe(connection), this.quiet);
    try {
      const cursor = this.model.cursor ? `?cursor=${encodeURIComponent(this.model.cursor)}` : "";
      if (cursor) void this.probe(connection); // without changes, the stream sends nothing
      const response = await get(path`/runs/${this.run}/status:watch` + cursor, connection.signal, this.fetch);
      if (!response.body) throw new Problem("the answer is empty", 0, "UNREACHABLE", "");
      await readLines(response.body, (line) => this.receive(line), connection.signal);
      const { status } = this.model;
      if (status && this.model.complete && isEnded(status.state)) return null;
      return new Problem("the connection ended", 0, "DISCONNECTED", "");
    } catch (error) {
      if (error instanceof Problem) return error;
      return new Problem("the connection was lost", 0, "DISCONNECTED", "");
    } finally {
      clearInterval(guard);
      this.stopped.signal.removeEventListener("abort", stop);
      connection.abort();
    }
  }

  private receive(line: unknown): void {
    const { result, error } = line as { result?: WireWatch; error?: unknown };
    if (error) throw streamProblem(error);
    if (!result) return;
    this.model.apply(result, Date.now());
    this.attempts = 0;
    this.setLive();
  }

  private setLive(): void {
    this.lastUpdate = Date.now();
    this.set({ state: "live" });
  }

  // The service sends a message every few seconds, and a connection can fail silently. After some silence the
  // data counts as stale and the status is requested. If that fails, or is newer than the stream, a new stream
  // is opened.
  private async probe(connection: AbortController): Promise<void> {
    if (Date.now() - this.lastUpdate < this.quiet) return;
    if (this.link.state === "live") {
      const problem = new Problem(`no message was received for ${Math.round(this.quiet / 1000)} s`, 0, "SILENT", "");
      this.set({ state: "stale", lastUpdate: this.lastUpdate, retryAt: Date.now(), problem });
    }
    try {
      const wire = await getJSON<WireStatus>(path`/runs/${this.run}/status`, connection.signal, this.fetch);
      const answer = parseStatus(wire, Date.now());
      const { status } = this.model;
      if (connection.signal.aborted) return;
      if (status && status.state === answer.state && status.counts.pending === answer.counts.pending) return this.setLive();
      const lastUpdate = this.lastUpdate; // the stream may be about to deliver it
      setTimeout(() => this.lastUpdate === lastUpdate && connection.abort(), this.quiet / 5);
    } catch {
      connection.abort();
    }
  }

  private isPermanent({ status, reason }: Problem): boolean {
    // The status service may learn of a new run a moment later than its creator.
    if (status === 404) return this.model.complete || this.attempts >= maxNotFoundAttempts;
    return [400, 401, 403, 501].includes(status) && reason !== "INVALID_CURSOR";
  }

  private wait(problem: Problem): number {
    const limit = Math.min(this.longestWait, this.firstWait * 2 ** this.attempts++);
    return Math.max(problem.retryAfter * 1000, this.firstWait / 4, Math.random() * limit);
  }

  private pause(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(done, milliseconds);
      this.wake = done;
      function done() {
        clearTimeout(timer);
        resolve();
      }
    });
  }

  private set(link: Link): void {
    this.link = link;
    this.changed();
  }
}


// Maps gRPC codes to HTTP statuses: an error within a stream has only the former.
const statuses: Record<number, number> = { 3: 400, 5: 404, 7: 403, 12: 501, 14: 503, 16: 401 };

function streamProblem(error: unknown): Problem {
  const { code, message, details } = error as { code?: number; message?: string; details?: Record<string, unknown>[] };
  const reason = details?.map((d) => d["reason"]).find((r) => typeof r === "string") as string | undefined;
  return new Problem(message || "the stream was aborted", statuses[code ?? 0] ?? 500, reason ?? "", "");
}
