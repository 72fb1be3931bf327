// One pair, as a line or in full.
import type { JSX } from "preact";
import { path } from "../model/api";
import { bytes, count, duration, percent } from "../model/format";
import { factsOf, isFinal, presenceOf } from "../model/kinds";
import { begin, type Pair } from "../model/parse";
import { lastHeartbeatOf } from "../model/rows";
import { KindBadge, nodeLink, PresenceBadge, Prose, Time } from "./small";

export function resultPath(run: string, pair: Pair): string {
  return path`/runs/${run}/results/${pair.plugin}/${pair.node}/content`;
}

/** "Stuck for 3 min: no progress since ..." */
export function pairLine(pair: Pair, now: number): string {
  const { label } = factsOf(pair.kind);
  const since = begin(pair);
  if (pair.kind === "genuine") return `${label}, ${bytes(pair.size)}`;
  const lasting = since && !isFinal(pair.kind) && pair.kind !== "not_started" ? ` for ${duration((now - since) / 1000)}` : "";
  const text = pair.error || pair.detail || progressLine(pair);
  return text ? `${label}${lasting}: ${text}` : `${label}${lasting}`;
}

export function progressLine(pair: Pair): string {
  const { progress } = pair;
  if (!progress) return "";
  const counted = progress.total > 0 ? `${count(progress.completed)} of ${count(progress.total)} (${percent(progress.completed / progress.total)})` : "";
  return [counted, progress.message].filter(Boolean).join(" · ");
}

/** Shows the age of the last heartbeat if heartbeats are known to be missing, otherwise its time. */
export function Heartbeat({ pair, now, stale, offset }: { pair: Pair; now: number; stale: boolean; offset: number }): JSX.Element {
  const at = lastHeartbeatOf(pair);
  if (!at) return <span class="muted">none yet</span>;
  const server = at + offset;
  if (presenceOf(pair.presence).silent && !stale) {
    return <span title={`the last one: ${new Date(server).toISOString()}`}>{duration((now - server) / 1000)} ago</span>;
  }
  return <Time at={server} now={now} />;
}

const phases: Record<string, string> = {
  PHASE_CHECKING: "checking prerequisites",
  PHASE_WORKING: "working",
  PHASE_WAITING: "waiting for the plugin's done file",
  PHASE_DELIVERING: "delivering",
  PHASE_BLOCKED: "waiting for an external dependency",
  PHASE_BACKPRESSURED: "waiting because a service asked for it",
};

export function PairDetails(props: { pair: Pair; run: string; now: number; stale: boolean; close: () => void }): JSX.Element {
  const { pair, run, now, stale } = props;
  const since = begin(pair);
  const { progress, fault } = pair;
  return (
    <div class="pair-details" aria-label={`${pair.plugin} on ${pair.node}`} role="group">
      <div class="pair-head">
        <KindBadge kind={pair.kind} />
        <h3>
          <a href={nodeLink(pair.node)}>{pair.node}</a> <span class="muted">{pair.plugin}</span>
        </h3>
        <button type="button" class="plain" onClick={props.close} aria-label="Close the details">
          Close
        </button>
      </div>
      <dl>
        {since > 0 && <Fact name="Since"><Time at={since} now={now} /></Fact>}
        {pair.detail && <Fact name="Detail">{pair.detail}</Fact>}
        {pair.error && <Fact name="Error">{pair.error}</Fact>}
        {pair.next && <Fact name="Next step"><Prose text={pair.next} /></Fact>}
        {progress && <Fact name="Progress">{progressLine(pair) || "reported"}{progress.time > 0 && <> (<Time at={progress.time} now={now} />)</>}</Fact>}
        {progress && progress.failures.length + progress.omittedFailures > 0 && (
          <Fact name="Failures"><Names names={progress.failures} omitted={progress.omittedFailures} /></Fact>
        )}
        {progress && progress.errors.length + progress.omittedErrors > 0 && (
          <Fact name="Errors reported"><Names names={progress.errors} omitted={progress.omittedErrors} /></Fact>
        )}
        {!isFinal(pair.kind) && pair.age >= 0 && <Fact name="Last heartbeat"><Heartbeat pair={pair} now={now} stale={stale} offset={now - Date.now()} /></Fact>}
        {!isFinal(pair.kind) && <Fact name="Presence"><PresenceBadge presence={pair.presence} /></Fact>}
        {!isFinal(pair.kind) && phases[pair.phase] && <Fact name="Phase">{phases[pair.phase]}</Fact>}
        {fault && (fault.message || fault.check) && (
          <Fact name="Fault">
            {[fault.check, fault.address].filter(Boolean).join(" at ")}: {fault.message} {fault.nextStep && <em><Prose text={fault.nextStep} /></em>}
          </Fact>
        )}
        {pair.kind === "genuine" && (
          <Fact name="Result">
            <a href={resultPath(run, pair)} download>Download</a> ({bytes(pair.size)})
          </Fact>
        )}
      </dl>
    </div>
  );
}

function Fact({ name, children }: { name: string; children: preact.ComponentChildren }): JSX.Element {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

const namesShown = 20;

function Names({ names, omitted }: { names: readonly string[]; omitted: number }): JSX.Element {
  const more = Math.max(0, names.length - namesShown) + omitted;
  return (
    <ul class="names">
      {names.slice(0, namesShown).map((name, index) => (
        <li key={index}>{name}</li>
      ))}
      {more > 0 && <li class="muted">and {count(more)} more</li>}
    </ul>
  );
}
