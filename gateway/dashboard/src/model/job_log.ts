// The newest output of a job, received from its watch stream.
import { getJSON, path, type Fetch } from "./api";
import { bytes } from "./format";
import { failureText } from "./outcomes";
import { number, text } from "./parse";
import type { Stream } from "./watch";
import type { WireJob, WireJobWatch, WireRecord } from "./wire";

/** A line of output, or a note about it. */
export interface LogLine {
  /** Increments from line to line. */
  number: number;
  node: string;
  stream: "stdout" | "stderr" | "note";
  text: string;
}

const maxLines = 1000;
const maxLength = 2000; // characters; a longer line is continued in the next one
const colours = /\u001b\[[0-9;:?]*[ -/]*[@-~]/g; // sequences of terminals

/** Returns the text of a line without sequences and control characters of terminals. */
export function shown(line: LogLine): string {
  return text(line.text.replace(colours, "").replace(/\r$/, ""));
}

export class JobLog implements Stream {
  lines: LogLine[] = [];
  /** Lines that were received and are not kept. */
  dropped = 0;
  job: WireJob | null = null;
  ended = false;
  readonly exists = true;
  readonly silent = true;

  private position = 0;
  private received = 0; // bytes of output
  private stored = -1; // bytes of output at the service, when it was asked last
  private count = 0;
  private readonly decoders = new Map<string, TextDecoder>();
  private readonly open = new Map<string, LogLine>(); // lines without their end
  private readonly lost = new Map<string, string>(); // by relay

  /** `node` selects the output of one node; empty: all. */
  constructor(
    private readonly id: string,
    readonly node: string,
  ) {}

  path(): string {
    const query = new URLSearchParams();
    if (this.position > 0) query.set("position", String(this.position));
    if (this.node) query.set("nodes", this.node);
    return path`/jobs/${this.id}:watch` + (query.size > 0 ? `?${query}` : "");
  }

  get begun(): boolean {
    return this.position > 0;
  }

  /** Texts about the relays and nodes that the root relay has lost. */
  get unreachable(): string[] {
    return [...this.lost.values()];
  }

  receive(message: unknown): void {
    const { records, position, job, complete } = message as WireJobWatch;
    for (const record of records ?? []) this.add(record);
    this.position = Math.max(this.position, number(position));
    if (job) this.job = job;
    this.ended = complete ?? false;
    if (this.ended) this.lost.clear();
  }

  restart(): void {
    this.lines = [];
    this.dropped = this.position = this.received = 0;
    this.decoders.clear();
    this.open.clear();
    this.lost.clear();
  }

  // The service does not count the bytes of one node. A number of bytes that did not change since the last request is no
  // reason for a new stream: output may have been omitted.
  async isCurrent(signal: AbortSignal, fetcher: Fetch): Promise<boolean> {
    const job = await getJSON<WireJob>(path`/jobs/${this.id}`, signal, fetcher);
    const stored = number(job.outputBytes);
    const complete = this.node !== "" || this.received >= stored || this.stored === stored;
    this.stored = stored;
    return this.job?.state === job.state && complete;
  }

  private add(record: WireRecord): void {
    const node = text(record.node);
    if (record.output) this.write(node, record.output.stream === "JOB_STREAM_STDERR" ? "stderr" : "stdout", record.output.data ?? "");
    if (record.cut && number(record.cut.bytes) > 0) this.note(node, `[${bytes(number(record.cut.bytes))} of output omitted]`);
    if (record.branch) this.branch(text(record.branch.relay), record.branch.lost ?? false, text(record.branch.detail));
    if (!record.final) return;
    const failure = failureText(record.final);
    if (number(record.sequence) > 0 && !record.final.recordsVerified) {
      this.note(node, "the output is not what the node signed; it may have been changed or lost in transit");
    }
    const remark = failure || text(record.final.detail);
    if (remark) this.note(node, remark);
    for (const stream of ["stdout", "stderr"]) this.decoders.delete(`${node}/${stream}`);
  }

  private branch(relay: string, lost: boolean, detail: string): void {
    if (lost) this.lost.set(relay, detail);
    else this.lost.delete(relay);
    this.note("", detail);
  }

  private write(node: string, stream: "stdout" | "stderr", data: string): void {
    const key = `${node}/${stream}`; // a name contains no slash
    const decoder = this.decoders.get(key) ?? new TextDecoder();
    this.decoders.set(key, decoder);
    const content = Uint8Array.from(atob(data), (byte) => byte.charCodeAt(0));
    this.received += content.length;
    const pieces = decoder.decode(content, { stream: true }).split("\n");
    pieces.forEach((piece, index) => {
      if (index > 0) this.open.delete(key);
      if (piece === "" && (index === pieces.length - 1 || this.open.has(key))) return;
      this.extend(key, node, stream, piece);
    });
  }

  private extend(key: string, node: string, stream: "stdout" | "stderr", piece: string): void {
    for (let from = 0; from === 0 || from < piece.length; ) {
      let line = this.open.get(key);
      if (!line || line.text.length >= maxLength) {
        line = this.push(node, stream, "");
        this.open.set(key, line);
      }
      const length = maxLength - line.text.length;
      line.text += piece.slice(from, from + length);
      from += length;
    }
  }

  private note(node: string, content: string): void {
    for (const stream of ["stdout", "stderr"]) this.open.delete(`${node}/${stream}`);
    this.push(node, "note", content);
  }

  private push(node: string, stream: LogLine["stream"], content: string): LogLine {
    const line: LogLine = { number: this.count++, node, stream, text: content };
    this.lines.push(line);
    if (this.lines.length > 2 * maxLines) {
      this.dropped += this.lines.length - maxLines;
      this.lines = this.lines.slice(-maxLines);
    }
    return line;
  }
}
