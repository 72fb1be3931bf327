// One run, live.
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { Grid } from "../grid/grid";
import { path } from "../model/api";
import { bytes, clock, count, duration, nameOf, percent, plural, range } from "../model/format";
import { globalNode } from "../model/matrix";
import { isEnded, number, run as parseRun, type Estimate, type Status } from "../model/parse";
import type { RunModel } from "../model/run_model";
import type { WireArchive, WireRun } from "../model/wire";
import type { Link } from "../model/watch";
import { useOnce, useRun, useSeconds } from "../parts/hooks";
import { PairTables } from "../parts/pair_tables";
import { Bar, Card, CountList, Empty, Notice, PinnedTag, ReasonList, StateBadge, Time } from "../parts/small";
import { LinkBadge, LinkNotice } from "../parts/stale";
import { Timeline } from "../parts/timeline";

const maxFeedAge = 15_000; // milliseconds

export function RunPage({ run }: { run: string }): JSX.Element {
  const { model, watcher } = useRun(run);
  useSeconds();
  const { status } = model;
  const { link } = watcher;
  const stale = link.state === "stale" || link.state === "refused";
  // The server's clock; it stops while no messages are received.
  const now = model.now(stale && link.lastUpdate ? link.lastUpdate : Date.now());
  useEffect(() => {
    document.title = status ? `${percent(status.percent)} ${status.state.replace("_", "-")} · ${run} · Muster` : `${run} · Muster`;
  }, [run, status?.percent, status?.state]);
  return (
    <>
      <Heading run={run} status={status} link={link} now={now} />
      <LinkNotice watcher={watcher} />
      {status && <Warnings status={status} now={now} />}
      {!status && link.state === "connecting" && <Empty>Waiting for the status of {run}.</Empty>}
      {status && (
        <div class={stale ? "is-stale" : ""}>
          <Summary status={status} now={now} />
          <Plugins status={status} now={now} />
          <PairTables model={model} now={now} stale={stale} />
          <GridCard model={model} now={now} stale={stale} />
          <Card title="Timeline" id="timeline">
            <Timeline model={model} now={now} />
          </Card>
          <Downloads status={status} />
        </div>
      )}
    </>
  );
}

function Heading({ run, status, link, now }: { run: string; status: Status | null; link: Link; now: number }): JSX.Element {
  const wire = useOnce<WireRun>(path`/runs/${run}`);
  const facts = wire && parseRun(wire);
  return (
    <header class="page-head">
      <nav class="crumbs" aria-label="You are here">
        <a href="#/">Runs</a> <span aria-hidden="true">/</span> <span class="mono">{run}</span>
      </nav>
      <div class="page-title">
        <h1>{status?.title || facts?.title || <span class="mono">{run}</span>}</h1>
        {status && <StateBadge state={status.state} counts={status.counts} damaged={status.damaged} />}
        {facts?.pinned && <PinnedTag />}
        <LinkBadge link={link} />
      </div>
      {status && (
        <p class="sub">
          Created <Time at={status.created} now={now} />
          {facts?.createdBy && <> by <span title={facts.createdBy}>{nameOf(facts.createdBy)}</span></>}
          {status.ended > 0 && <> · ended <Time at={status.ended} now={now} />, after {duration((status.ended - status.created) / 1000)}</>}
          {!isEnded(status.state) && status.deadline > 0 && (
            <> · deadline <Time at={status.deadline} now={now} />{status.deadline > now && ` (in ${duration((status.deadline - now) / 1000)})`}</>
          )}
        </p>
      )}
    </header>
  );
}

function Warnings({ status, now }: { status: Status; now: number }): JSX.Element {
  const failed = status.state === "failed" || status.state === "cancelled";
  const old = !isEnded(status.state) && status.feedTime > 0 && status.time - status.feedTime > maxFeedAge;
  return (
    <>
      {failed && (
        <Notice tone={status.state === "failed" ? "bad" : "info"} title={status.state === "failed" ? "The run failed" : "The run was cancelled"}>
          {status.stateReason || "No reason was reported."}
        </Notice>
      )}
      {status.stateReason && !isEnded(status.state) && (
        <Notice tone="warn" title="The run has not ended yet">
          {status.stateReason}
        </Notice>
      )}
      {status.damaged > 0 && (
        <Notice tone="bad" title={status.damaged === 1 ? "A stored result or archive is damaged" : `${count(status.damaged)} stored results or archives are damaged`}>
          Damaged content cannot be downloaded. “muster status {status.run}” lists it. Restore a backup, and check the disk.
        </Notice>
      )}
      {status.doubt && (
        <Notice tone="warn" title="The state of some nodes is not known">
          {status.doubt}. Until this ends, these nodes are not reported as lost.
        </Notice>
      )}
      {old && (
        <Notice tone="warn" title={`No changes were received from the aggregator since ${clock(status.feedTime, now)}`}>
          Later results are not shown.
        </Notice>
      )}
    </>
  );
}

function Summary({ status, now }: { status: Status; now: number }): JSX.Element {
  return (
    <section class="card summary" aria-label="Progress of the run">
      <div class="summary-number">
        <span>
          <span class="big" data-test="percent">{percent(status.percent)}</span> <span class="muted">have an outcome</span>
        </span>
        <EstimateText estimate={status.estimate} ended={isEnded(status.state) || status.counts.pending === 0} now={now} />
      </div>
      <Bar counts={status.counts} label="Progress of the run" ended={isEnded(status.state)} />
      <CountList counts={status.counts} ended={isEnded(status.state)} />
      {status.reasons.length > 0 && !isEnded(status.state) && <ReasonList reasons={status.reasons} />}
    </section>
  );
}

function EstimateText({ estimate, ended, now }: { estimate: Estimate | null; ended: boolean; now: number }): JSX.Element | null {
  if (ended) return null;
  if (!estimate) return <span class="muted">no estimate yet</span>;
  return (
    <span class="estimate-text" title="Estimated from the durations of other pairs of the same plugin">
      expected to end {range(estimate.earliest, estimate.latest, now)}
      {estimate.latest > now && <span class="muted"> ({clock(estimate.earliest, now)} to {clock(estimate.latest, now)})</span>}
    </span>
  );
}

function Plugins({ status, now }: { status: Status; now: number }): JSX.Element {
  return (
    <Card title="Plugins" id="plugins">
      <ul class="plugins">
        {status.plugins.map((p) => (
          <li key={p.plugin} data-plugin={p.plugin}>
            <div class="plugin-name">
              <b>{p.plugin}</b>
              {p.once && <span class="tag" title="It runs once, not on each node">once</span>}
            </div>
            <Bar counts={p.counts} label={`Progress of ${p.plugin}`} ended={isEnded(status.state)} />
            <div class="plugin-numbers">
              <b>{percent(p.percent)}</b>
              <span class="muted">{count(p.counts.planned - p.counts.pending)} of {count(p.counts.planned)}</span>
            </div>
            <div class="plugin-more">
              {p.counts.pending > 0 && p.reasons.length > 0 && <ReasonList reasons={p.reasons} />}
              {p.counts.pending > 0 && p.estimate && !isEnded(status.state) && <EstimateText estimate={p.estimate} ended={false} now={now} />}
            </div>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function GridCard({ model, now, stale }: { model: RunModel; now: number; stale: boolean }): JSX.Element {
  const { matrix } = model;
  const nodes = matrix.nodes.filter((node) => node !== globalNode).length;
  const size = `${plural(matrix.plugins.length, "plugin")}, ${plural(nodes, "node")}`;
  return (
    <Card title="Plugins × nodes" id="grid" aside={model.complete && <span class="muted">{size}</span>}>
      {model.loading > 0 && !model.complete && <Empty>{plural(model.loading, "pair")} received.</Empty>}
      {model.complete && matrix.nodes.length > 0 && <Grid model={model} now={now} stale={stale} />}
      {model.complete && matrix.nodes.length === 0 && <Empty>The run has no pairs.</Empty>}
    </Card>
  );
}

function Downloads({ status }: { status: Status }): JSX.Element {
  const ready = status.state === "complete";
  const archive = useOnce<WireArchive>(ready ? path`/runs/${status.run}/archive` : null);
  return (
    <Card title="Downloads" id="downloads">
      {ready ? (
        <p>
          <a class="button" href={path`/runs/${status.run}/archive/content`} download>
            Archive{archive && ` (${bytes(number(archive.size))})`}
          </a>{" "}
          <span class="muted">{archive?.fileName} contains all results, and a manifest to verify them.</span>
        </p>
      ) : (
        <p class="muted">{archiveText(status)} You can download a result as soon as it is committed: see “Genuine results” above, or select a cell of the grid.</p>
      )}
    </Card>
  );
}

function archiveText(status: Status): string {
  if (status.state === "failed" || status.state === "cancelled") return `There is no archive because the run ${status.state === "failed" ? "failed" : "was cancelled"}.`;
  return "The archive is available when the run is complete.";
}
