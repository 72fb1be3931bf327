// All runs, the newest first.
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { getJSON, getPages, path, Problem, unauthenticated } from "../model/api";
import { count, duration, percent, plural } from "../model/format";
import { bySeverity, factsOf } from "../model/kinds";
import { isEnded, run as parseRun, share, status as parseStatus, type Run, type Status } from "../model/parse";
import type { WireRun, WireStatus } from "../model/wire";
import { usePages, useSeconds } from "../parts/hooks";
import { Bar, Card, Empty, KindIcon, PinnedTag, runLink, ShowMore, StateBadge, Time } from "../parts/small";
import { PollBadge, PollNotice } from "../parts/stale";

interface Listed {
  run: Run;
  status: Status | null;
}

const pollInterval = 3000; // milliseconds
const page = 50;
const maxFollowed = 20; // runs whose stragglers are requested

export function RunsPage(): JSX.Element {
  const { shown, lastUpdate, problem, now, showMore } = usePages("runs", pollInterval, load);
  useSeconds();
  useEffect(() => {
    document.title = "Runs · Muster";
  }, []);
  return (
    <>
      <header class="page-head">
        <div class="page-title">
          <h1>Runs</h1>
          <PollBadge lastUpdate={lastUpdate} />
        </div>
      </header>
      <PollNotice problem={problem} lastUpdate={lastUpdate} />
      {!shown && !problem && <Empty>Loading runs.</Empty>}
      {shown && (
        <Card title="Newest first" id="runs">
          {shown.runs.length === 0 && (
            <Empty>
              There is no run yet. Create one: <code>muster run --plugin hostfacts --node NAME</code>
            </Empty>
          )}
          <ul class="runs">
            {shown.runs.map(({ run, status }) => (
              <RunRow key={run.id} run={run} status={status} now={now} />
            ))}
          </ul>
          {shown.more && <ShowMore label="Show older runs" onShow={showMore} />}
        </Card>
      )}
      {(shown || (problem && problem.status !== unauthenticated)) && <OtherPages />}
    </>
  );
}

const otherPages: [address: string, label: string, text: string][] = [
  ["#/deployments", "Deployments", "templates that run in containers on nodes"],
  ["#/templates", "Templates", "what can be deployed, and a form for it"],
  ["#/types", "Template types", "the images that templates are based on"],
  ["#/workspaces", "Workspaces", "folders that deployments keep between their runs"],
  ["#/nodes", "Nodes", "the machines of the fleet"],
];

// A run is one kind of work of a fleet: leads to the others. Shown after the list, which would move it.
function OtherPages(): JSX.Element {
  return (
    <nav class="card others" aria-label="Other work of the fleet">
      <ul>
        {otherPages.map(([address, label, text]) => (
          <li key={address}>
            <a href={address}>{label}</a>
            <div class="muted">{text}</div>
          </li>
        ))}
      </ul>
    </nav>
  );
}

async function load(pages: number, signal: AbortSignal): Promise<{ runs: Listed[]; more: boolean }> {
  const { items: runs, more } = await getPages("/api/v1/runs", page, pages, (each: { runs?: WireRun[]; nextPageToken?: string }) => (each.runs ?? []).map(parseRun), signal);
  const followed = runs.filter((run) => !isEnded(run.state)).slice(0, maxFollowed);
  const statuses = new Map(await Promise.all(followed.map(async (run) => [run.id, await statusOf(run.id, signal)] as const)));
  return { runs: runs.map((run) => ({ run, status: statuses.get(run.id) ?? null })), more };
}

// The aggregator lists the runs; the status service may be unreachable, or not know a run yet.
async function statusOf(run: string, signal: AbortSignal): Promise<Status | null> {
  try {
    return parseStatus(await getJSON<WireStatus>(path`/runs/${run}/status`, signal), Date.now());
  } catch (error) {
    if (error instanceof Problem) return null;
    throw error;
  }
}

function RunRow({ run, status, now }: Listed & { now: number }): JSX.Element {
  const counts = status?.counts ?? run.counts;
  return (
    <li data-run={run.id}>
      <a class="run" href={runLink(run.id)}>
        <span class="run-name">
          <span>
            <b>{run.title || <span class="mono">{run.id}</span>}</b>
            {run.pinned && <PinnedTag />}
          </span>
          {run.title && <span class="mono muted">{run.id}</span>}
        </span>
        <StateBadge state={run.state} counts={counts} damaged={run.damaged} />
        <span class="run-bar">
          <Bar counts={counts} label={`Progress of ${run.title || run.id}`} ended={isEnded(run.state)} />
          <b>{percent(share(counts))}</b>
        </span>
        <span class="run-facts muted">
          <span>{count(counts.planned - counts.pending)} of {count(counts.planned)}</span>
          {counts.errors > 0 && <span>{plural(counts.errors, "error")}</span>}
          {counts.timedOut > 0 && <span>{count(counts.timedOut)} timed out</span>}
          <Stragglers run={run} status={status} />
          <span class="run-when">
            <Time at={run.created} now={now} />
            {isEnded(run.state) && run.ended > 0 && `, took ${duration((run.ended - run.created) / 1000)}`}
          </span>
        </span>
        {run.stateReason && <span class="run-reason">{run.stateReason}</span>}
      </a>
    </li>
  );
}

function Stragglers({ run, status }: Listed): JSX.Element | null {
  if (isEnded(run.state)) return null;
  if (!status) return <span>stragglers unknown</span>;
  const stragglers = bySeverity(status.reasons).filter((r) => factsOf(r.kind).trouble);
  if (stragglers.length === 0) return null;
  return (
    <>
      {stragglers.map((r) => (
        <span key={r.kind} class="stragglers">
          <KindIcon kind={r.kind} /> {count(r.count)} {factsOf(r.kind).label.toLowerCase()}
        </span>
      ))}
    </>
  );
}
