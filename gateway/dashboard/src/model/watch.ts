// Follows a run by the watch stream, through lost connections, and knows since when what it has is stale.
import { get, getJSON, path, Problem, type Fetch } from "./api";
import { readLines } from "./lines";
import { isEnded, status as parseStatus } from "./parse";
import type { RunModel } from "./run_model";
import type { WireStatus, WireWatch } from "./wire";

export type Link =
  | { state: "connecting" }
  | { state: "live" }
  /** What is shown held at `heard`; `retryAt` is when the next attempt is made. Browser's clock. */
  | { state: "stale"; heard: number; retryAt: number; problem: Problem }
  /** The run has ended and all of it was told. */
  | { state: "ended" }
  /** Trying again would not help. */
  | { state: "refused"; heard: number; problem: Problem };

const patienceForNew = 4; // attempts

export interface Options {
  fetch?: Fetch;
  /** Milliseconds without a message after which the server is asked whether all is well. */
  quiet?: number;
  /** Milliseconds of the first and the longest wait between two attempts. */
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
  private heard = 0;
  private hurry: (() => void) | null = null;

  /** `changed` is called after each change of the model or the link: often, so it should do little. */
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
    this.hurry?.();
  }

  /** Ends the wait for the next attempt. */
  retryNow(): void {
    this.attempts = 0;
    this.hurry?.();
  }

  private async follow(): Promise<void> {
    while (!this.stopped.signal.aborted) {
      const problem = await this.stream();
      if (this.stopped.signal.aborted) return;
      if (problem === null) {
        this.set({ state: "ended" });
        return;
      }
      if (this.isHopeless(problem)) {
        this.set({ state: "refused", heard: this.heard, problem });
        return;
      }
      if (problem.reason === "INVALID_CURSOR") this.model.restart();
      const wait = this.wait(problem);
      this.set({ state: "stale", heard: this.heard, retryAt: Date.now() + wait, problem });
      await this.pause(wait);
    }
  }

  // One connection to its end: null when the run has ended and all was told, else why it broke.
  private async stream(): Promise<Problem | null> {
    const connection = new AbortController();
    const stop = () => connection.abort();
    this.stopped.signal.addEventListener("abort", stop);
    const guard = setInterval(() => void this.ask(connection), this.quiet);
    try {
      const cursor = this.model.cursor ? `?cursor=${encodeURIComponent(this.model.cursor)}` : "";
      if (cursor) void this.ask(connection); // if nothing has changed, the stream says nothing
      const response = await get(path`/runs/${this.run}/status:watch` + cursor, connection.signal, this.fetch);
      if (!response.body) throw new Problem("the answer is empty", 0, "UNREACHABLE", "");
      await readLines(response.body, (line) => this.take(line), connection.signal);
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

  private take(line: unknown): void {
    const { result, error } = line as { result?: WireWatch; error?: unknown };
    if (error) throw streamProblem(error);
    if (!result) return;
    this.model.apply(result, Date.now());
    this.attempts = 0;
    this.well();
  }

  private well(): void {
    this.heard = Date.now();
    this.set({ state: "live" });
  }

  // The service gives a sign of life every few seconds, and a connection may die without one. So after some
  // silence what is shown counts as stale, and the server is asked; if it does not answer, or knows more than
  // the stream has told, a new stream is opened.
  private async ask(connection: AbortController): Promise<void> {
    if (Date.now() - this.heard < this.quiet) return;
    if (this.link.state === "live") {
      const problem = new Problem(`nothing was heard for ${Math.round(this.quiet / 1000)} s`, 0, "SILENT", "");
      this.set({ state: "stale", heard: this.heard, retryAt: Date.now(), problem });
    }
    try {
      const wire = await getJSON<WireStatus>(path`/runs/${this.run}/status`, connection.signal, this.fetch);
      const answer = parseStatus(wire, Date.now());
      const { status } = this.model;
      if (connection.signal.aborted) return;
      if (status && status.state === answer.state && status.counts.pending === answer.counts.pending) return this.well();
      const heard = this.heard; // the stream may be about to tell it
      setTimeout(() => this.heard === heard && connection.abort(), this.quiet / 5);
    } catch {
      connection.abort();
    }
  }

  private isHopeless({ status, reason }: Problem): boolean {
    // The status service may hear of a new run a moment later than its creator.
    if (status === 404) return this.model.complete || this.attempts >= patienceForNew;
    return [400, 401, 403, 501].includes(status) && reason !== "INVALID_CURSOR";
  }

  private wait(problem: Problem): number {
    const limit = Math.min(this.longestWait, this.firstWait * 2 ** this.attempts++);
    return Math.max(problem.retryAfter * 1000, this.firstWait / 4, Math.random() * limit);
  }

  private pause(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(done, milliseconds);
      this.hurry = done;
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


// gRPC's codes, as HTTP would say them: an error in the middle of a stream has only the former.
const statuses: Record<number, number> = { 3: 400, 5: 404, 7: 403, 12: 501, 14: 503, 16: 401 };

function streamProblem(error: unknown): Problem {
  const { code, message, details } = error as { code?: number; message?: string; details?: Record<string, unknown>[] };
  const reason = details?.map((d) => d["reason"]).find((r) => typeof r === "string") as string | undefined;
  return new Problem(message || "the stream was broken off", statuses[code ?? 0] ?? 500, reason ?? "", "");
}
