// Small components that several pages share.
import type { ComponentChildren, JSX } from "preact";
import { clock, count, percent } from "../model/format";
import { bySeverity, factsOf, kinds, presenceOf, type Kind } from "../model/kinds";
import { share, type Counts, type RunState } from "../model/parse";

export function runLink(run: string): string {
  return `#/runs/${encodeURIComponent(run)}`;
}

export function nodeLink(node: string): string {
  return `#/nodes/${encodeURIComponent(node)}`;
}

/** The end of a list that has more rows. */
export function ShowMore({ label = "Show more", onShow, children }: { label?: string; onShow: () => void; children?: ComponentChildren }): JSX.Element {
  return (
    <div class="rows-foot">
      <button type="button" onClick={onShow}>
        {label}
      </button>
      {children}
    </div>
  );
}

function kindClass(kind: Kind): string {
  return `kind-${kind.replaceAll("_", "-")}`;
}

/** The cell of the grid as an icon: colour and shape. */
export function KindIcon({ kind, size = 12 }: { kind: Kind; size?: number }): JSX.Element {
  const { glyph, hollow } = factsOf(kind);
  return (
    <svg class={`kind-icon ${kindClass(kind)} ${hollow ? "hollow" : ""}`} width={size} height={size} viewBox="0 0 10 10" aria-hidden="true">
      <rect x="0.5" y="0.5" width="9" height="9" rx="1.5" />
      {kind === "running" && <rect class="level" x="1" y="1" width="8" height="4" />}
      {glyph && <path d={glyph} />}
    </svg>
  );
}

export function KindBadge({ kind }: { kind: Kind }): JSX.Element {
  const { label, meaning } = factsOf(kind);
  return (
    <span class="kind-badge" title={meaning}>
      <KindIcon kind={kind} />
      {label}
    </span>
  );
}

const stateLabels: Record<RunState, string> = {
  planned: "Planned",
  running: "Running",
  post_processing: "Post-processing",
  complete: "Complete",
  failed: "Failed",
  cancelled: "Cancelled",
  unknown: "Unknown",
};

/** The state of a run. A complete run is green only if all results are genuine and intact. */
export function StateBadge({ state, counts, damaged }: { state: RunState; counts: Counts; damaged: number }): JSX.Element {
  const missing = state === "complete" ? counts.planned - counts.genuine : 0;
  const tone = damaged > 0 ? "damaged" : missing > 0 ? "incomplete" : "";
  return (
    <span class={`badge state-${state.replaceAll("_", "-")} ${tone}`} data-state={state}>
      {stateLabels[state]}
      {missing > 0 && (counts.genuine === 0 ? ", without a result" : `, ${count(missing)} without a result`)}
      {damaged > 0 && `, ${count(damaged)} damaged`}
    </span>
  );
}

export function PinnedTag(): JSX.Element {
  return (
    <span class="tag" title="Retention does not delete the run">
      pinned
    </span>
  );
}

export function PresenceBadge({ presence }: { presence: string }): JSX.Element {
  const { word, label } = presenceOf(presence);
  return (
    <span class={`presence presence-${word}`} data-presence={word}>
      <span class="dot" aria-hidden="true" />
      {label}
    </span>
  );
}

/** A time of day, with the full time as the title. */
export function Time({ at, now }: { at: number; now: number }): JSX.Element | null {
  if (!at) return null;
  const iso = new Date(at).toISOString();
  return (
    <time dateTime={iso} title={iso}>
      {clock(at, now)}
    </time>
  );
}

/** The share of pairs by outcome. */
export function Bar({ counts, label, ended }: { counts: Counts; label: string; ended: boolean }): JSX.Element {
  const done = share(counts);
  const part = (value: number, kind: Kind) =>
    value > 0 && (
      <span class={`part ${kindClass(kind)}`} style={{ width: `${(100 * value) / counts.planned}%` }} title={`${factsOf(kind).label}: ${count(value)}`} />
    );
  return (
    <div
      class="bar"
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.floor(done * 100)}
      aria-valuetext={`${percent(done)}: ${words(counts, ended)}`}
    >
      {part(counts.genuine, "genuine")}
      {part(counts.errors, "error")}
      {part(counts.timedOut, "timed_out")}
    </div>
  );
}

/** The word for pairs without an outcome. */
function pendingWord(ended: boolean): string {
  return ended ? "no outcome" : "pending";
}

function words(c: Counts, ended: boolean): string {
  const parts = [`${count(c.genuine)} genuine`];
  if (c.errors) parts.push(`${count(c.errors)} errors`);
  if (c.timedOut) parts.push(`${count(c.timedOut)} timed out`);
  parts.push(`${count(c.pending)} ${pendingWord(ended)}`);
  return parts.join(", ");
}

/** Counts by outcome, without zeros except for the first. */
export function CountList({ counts, ended }: { counts: Counts; ended: boolean }): JSX.Element {
  const entry = (value: number, kind: Kind, label: string) =>
    (value > 0 || kind === "genuine") && (
      <li>
        <KindIcon kind={kind} />
        <b>{count(value)}</b> {label}
      </li>
    );
  return (
    <ul class="counts">
      {entry(counts.genuine, "genuine", "genuine")}
      {entry(counts.errors, "error", counts.errors === 1 ? "error" : "errors")}
      {entry(counts.timedOut, "timed_out", "timed out")}
      {(counts.pending > 0 || !ended) && (
        <li>
          {ended && <KindIcon kind="no_outcome" />}
          <b>{count(counts.pending)}</b> {pendingWord(ended)}
        </li>
      )}
      <li class="of">of {count(counts.planned)}</li>
    </ul>
  );
}

export function ReasonList({ reasons }: { reasons: readonly { kind: Kind; count: number }[] }): JSX.Element {
  return (
    <ul class="reasons">
      {bySeverity(reasons).map(({ kind, count: value }) => (
        <li key={kind} class={factsOf(kind).trouble ? "trouble" : ""} title={factsOf(kind).meaning}>
          <KindIcon kind={kind} />
          <b>{count(value)}</b> {factsOf(kind).label.toLowerCase()}
        </li>
      ))}
    </ul>
  );
}

export function Notice({ tone, title, children }: { tone: "info" | "warn" | "bad"; title: string; children?: ComponentChildren }): JSX.Element {
  return (
    <div class={`notice ${tone}`} role={tone === "info" ? "status" : "alert"}>
      <strong>{title}</strong>
      {children && <div class="notice-text">{children}</div>}
    </div>
  );
}

export function Card(props: { title: string; id: string; aside?: ComponentChildren; children: ComponentChildren }): JSX.Element {
  return (
    <section class="card" aria-labelledby={props.id}>
      <header class="card-head">
        <h2 id={props.id}>{props.title}</h2>
        {props.aside}
      </header>
      {props.children}
    </section>
  );
}

/** A text of the services, with its `commands` as code. */
export function Prose({ text }: { text: string }): JSX.Element {
  return <>{text.split(/`([^`]+)`/).map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))}</>;
}

export function Empty({ children }: { children: ComponentChildren }): JSX.Element {
  return <p class="empty">{children}</p>;
}

/** Returns the kinds with at least one pair. */
export function occurring(tally: readonly number[]): { kind: Kind; index: number; count: number }[] {
  return kinds.map((k, index) => ({ kind: k.kind, index, count: tally[index] ?? 0 })).filter((k) => k.count > 0);
}
