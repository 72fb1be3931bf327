// Follows a watch stream, reconnects, and records since when the data is stale.
import { get, Problem, type Fetch } from "./api";
import { readLines } from "./lines";

/** A stream of the API, and what was received of it. */
export interface Stream {
  /** The path of the API that continues after what was received. */
  path(): string;
  /** True if something was received. A stream that continues it sends nothing while nothing changes. */
  readonly begun: boolean;
  /** True if the object is known to exist: it is not requested again after NOT_FOUND. */
  readonly exists: boolean;
  /** True if the object has ended and all changes were received. */
  readonly ended: boolean;
  /** True if silence is normal: the data counts as stale only if the state cannot be requested either. */
  readonly silent: boolean;
  receive(message: unknown): void;
  /** Drops the position: the next stream begins from the start. */
  restart(): void;
  /** Requests the state separately, and returns whether the stream has delivered it. */
  isCurrent(signal: AbortSignal, fetcher: Fetch): Promise<boolean>;
}

export type Link =
  | { state: "connecting" }
  | { state: "live" }
  /** The data is of `lastUpdate`; the next attempt is at `retryAt`. Both by the browser's clock. */
  | { state: "stale"; lastUpdate: number; retryAt: number; problem: Problem }
  /** The object has ended and all changes were received. */
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

  /** `changed` is called after each message and each change of the link. It is called often and must be cheap. */
  constructor(
    private readonly followed: Stream,
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
      if (isLostPosition(problem)) this.followed.restart();
      const wait = this.wait(problem);
      this.set({ state: "stale", lastUpdate: this.lastUpdate, retryAt: Date.now() + wait, problem });
      await this.pause(wait);
    }
  }

  // Runs one connection to its end. Returns null when the object has ended and all changes were received,
  // otherwise the error.
  private async stream(): Promise<Problem | null> {
    const connection = new AbortController();
    const stop = () => connection.abort();
    this.stopped.signal.addEventListener("abort", stop);
    const guard = setInterval(() => void this.probe(connection), this.quiet);
    try {
      if (this.followed.begun) void this.probe(connection); // without changes, the stream sends nothing
      const response = await get(this.followed.path(), connection.signal, this.fetch);
      if (!response.body) throw new Problem("the answer is empty", 0, "UNREACHABLE", "");
      await readLines(response.body, (line) => this.receive(line), connection.signal);
      if (this.followed.ended) return null;
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
    const { result, error } = line as { result?: unknown; error?: unknown };
    if (error) throw streamProblem(error);
    if (!result) return;
    this.followed.receive(result);
    this.attempts = 0;
    this.setLive();
  }

  private setLive(): void {
    this.lastUpdate = Date.now();
    this.set({ state: "live" });
  }

  // A connection can fail silently. After some silence the data counts as stale and the state is requested. If that
  // fails, or is newer than the stream, a new stream is opened.
  private async probe(connection: AbortController): Promise<void> {
    if (Date.now() - this.lastUpdate < this.quiet) return;
    if (this.link.state === "live" && !this.followed.silent) {
      const problem = new Problem(`no message was received for ${Math.round(this.quiet / 1000)} s`, 0, "SILENT", "");
      this.set({ state: "stale", lastUpdate: this.lastUpdate, retryAt: Date.now(), problem });
    }
    try {
      const current = await this.followed.isCurrent(connection.signal, this.fetch);
      if (connection.signal.aborted) return;
      if (current) return this.setLive();
      const lastUpdate = this.lastUpdate; // the stream may be about to deliver it
      setTimeout(() => this.lastUpdate === lastUpdate && connection.abort(), this.quiet / 5);
    } catch {
      connection.abort();
    }
  }

  private isPermanent(problem: Problem): boolean {
    // The status service may learn of a new run a moment later than its creator.
    if (problem.status === 404) return this.followed.exists || this.attempts >= maxNotFoundAttempts;
    return [400, 401, 403, 501].includes(problem.status) && !isLostPosition(problem);
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

// Returns whether the service does not know the position from which the stream was to continue.
function isLostPosition({ reason }: Problem): boolean {
  return reason === "INVALID_CURSOR" || reason === "INVALID_POSITION";
}

// Maps gRPC codes to HTTP statuses: an error within a stream has only the former.
const statuses: Record<number, number> = { 3: 400, 5: 404, 7: 403, 12: 501, 14: 503, 16: 401 };

function streamProblem(error: unknown): Problem {
  const { code, message, details } = error as { code?: number; message?: string; details?: Record<string, unknown>[] };
  const reason = details?.map((d) => d["reason"]).find((r) => typeof r === "string") as string | undefined;
  return new Problem(message || "the stream was aborted", statuses[code ?? 0] ?? 500, reason ?? "", "");
}
