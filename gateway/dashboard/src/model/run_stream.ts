// The watch stream of a run's status.
import { getJSON, path, type Fetch } from "./api";
import { isEnded, status as parseStatus } from "./parse";
import type { RunModel } from "./run_model";
import type { Stream } from "./watch";
import type { WireStatus, WireWatch } from "./wire";

export class RunStream implements Stream {
  readonly silent = false;

  constructor(
    private readonly run: string,
    private readonly model: RunModel,
  ) {}

  path(): string {
    const { cursor } = this.model;
    return path`/runs/${this.run}/status:watch` + (cursor ? `?cursor=${encodeURIComponent(cursor)}` : "");
  }

  get begun(): boolean {
    return this.model.cursor !== "";
  }

  get exists(): boolean {
    return this.model.complete;
  }

  get ended(): boolean {
    const { status, complete } = this.model;
    return status !== null && complete && isEnded(status.state);
  }

  receive(message: unknown): void {
    this.model.apply(message as WireWatch, Date.now());
  }

  restart(): void {
    this.model.restart();
  }

  async isCurrent(signal: AbortSignal, fetcher: Fetch): Promise<boolean> {
    const answer = parseStatus(await getJSON<WireStatus>(path`/runs/${this.run}/status`, signal, fetcher), Date.now());
    const { status } = this.model;
    return status !== null && status.state === answer.state && status.counts.pending === answer.counts.pending;
  }
}
