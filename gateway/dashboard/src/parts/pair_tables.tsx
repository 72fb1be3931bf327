// The pairs of a run as tables: stragglers, failures, results.
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { bytes, count, duration } from "../model/format";
import { factsOf } from "../model/kinds";
import { begin, isEnded, type Pair, type Status } from "../model/parse";
import { failures, matching, notStarted, results, sort, stragglers, type Column } from "../model/rows";
import { keyOf, type RunModel } from "../model/run_model";
import { Heartbeat, progressLine, resultPath } from "./pair";
import { Empty, KindBadge, nodeLink, Prose, Time } from "./small";

type Tab = "stragglers" | "waiting" | "failures" | "results";

const page = matchMedia("(max-width: 720px)").matches ? 5 : 12;
const more = 100;

export function PairTables({ model, now, stale }: { model: RunModel; now: number; stale: boolean }): JSX.Element {
  const [chosen, setTab] = useState<Tab | null>(null);
  const stragglers = (model.status?.reasons ?? []).filter((r) => factsOf(r.kind).trouble).reduce((sum, r) => sum + r.count, 0);
  const counts = model.status?.counts;
  const ended = model.status !== null && isEnded(model.status.state);
  const listed = model.status?.stragglers.length ?? 0;
  const waiting = model.status && !ended ? notStartedCount(model.status) : 0;
  const all: [Tab, string, number][] = [
    ["stragglers", "Stragglers", Math.max(stragglers, listed)],
    ["waiting", "Not started", waiting],
    ["failures", "Without a result", (counts?.errors ?? 0) + (counts?.timedOut ?? 0) + (ended ? (counts?.pending ?? 0) : 0)],
    ["results", "Genuine results", counts?.genuine ?? 0],
  ];
  const tab = chosen ?? first(model);
  const tabs = all.filter(([name, , value]) => name !== "waiting" || value > 0 || tab === name);
  const turn = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const next = tabs[(tabs.findIndex(([name]) => name === tab) + step + tabs.length) % tabs.length]![0];
    setTab(next);
    document.getElementById(`tab-${next}`)?.focus();
  };
  return (
    <section class="card" aria-labelledby="pairs">
      <h2 id="pairs" class="hidden">
        Stragglers and results
      </h2>
      <div class="tabs" role="tablist" aria-label="Pairs" onKeyDown={turn}>
        {tabs.map(([name, label, value]) => (
          <button
            key={name}
            type="button"
            role="tab"
            id={`tab-${name}`}
            aria-selected={tab === name}
            aria-controls="tab-panel"
            tabIndex={tab === name ? 0 : -1}
            onClick={() => setTab(name)}
          >
            {label} <span class={`tally ${name === "stragglers" && value > 0 ? "warm" : ""}`}>{count(value)}</span>
          </button>
        ))}
      </div>
      <div id="tab-panel" role="tabpanel" aria-labelledby={`tab-${tab}`}>
        <Rows key={tab} tab={tab} model={model} now={now} stale={stale} all={Math.max(stragglers, listed)} />
      </div>
    </section>
  );
}

// Returns the initial tab: for an ended run, the failures.
function first({ status }: RunModel): Tab {
  if (!status || status.stragglers.length > 0) return "stragglers";
  if (!isEnded(status.state)) return notStartedCount(status) > 0 ? "waiting" : "stragglers";
  return status.counts.genuine < status.counts.planned ? "failures" : "results";
}

function notStartedCount(status: Status): number {
  return status.reasons.find((r) => r.kind === "not_started")?.count ?? 0;
}

const select: Record<Tab, (model: RunModel) => Pair[]> = { stragglers, waiting: notStarted, failures, results };
const empty: Record<Tab, string> = {
  stragglers: "There are no stragglers.",
  waiting: "All pairs have started.",
  failures: "No pair has an error or is timed out.",
  results: "There are no genuine results yet.",
};

function Rows(props: { tab: Tab; model: RunModel; now: number; stale: boolean; all: number }): JSX.Element {
  const { tab, model, now, stale, all } = props;
  const [order, setOrder] = useState<{ by: Column; descending: boolean }>(
    tab === "stragglers" ? { by: "reason", descending: false } : tab === "waiting" ? { by: "node", descending: false } : { by: "since", descending: true },
  );
  const [words, setWords] = useState("");
  const [shown, setShown] = useState(page);
  // Stragglers are updated with every change; the tables of all pairs once a second.
  const moment = tab === "stragglers" ? model.version : Math.floor(now / 1000);
  const rows = useMemo(() => sort(select[tab](model), order.by, order.descending), [tab, model, order, moment, model.complete]);
  if (rows.length === 0) return <Empty>{model.complete ? empty[tab] : "Loading pairs."}</Empty>;
  const found = matching(rows, words);
  const visible = found.slice(0, shown);
  const head = (by: Column, label: string) => <Head by={by} label={label} order={order} setOrder={setOrder} />;
  return (
    <>
      {(rows.length > 5 || words) && (
        <input
          class="filter"
          type="search"
          placeholder="Filter: node, plugin, reason"
          aria-label="Filter these pairs"
          value={words}
          onInput={(event) => setWords(event.currentTarget.value)}
        />
      )}
      <table class={`rows rows-${tab}`}>
        <thead>
          <tr>
            {(tab === "stragglers" || tab === "failures") && head("reason", tab === "stragglers" ? "Reason" : "Outcome")}
            {head("node", "Node")}
            {head("plugin", "Plugin")}
            {tab !== "waiting" && head("since", tab === "stragglers" ? "Since" : "When")}
            {tab === "stragglers" && head("heartbeat", "Last heartbeat")}
            {(tab === "stragglers" || tab === "waiting") && <th scope="col">Detail and next step</th>}
            {tab === "failures" && <th scope="col">Reason</th>}
            {tab === "results" && head("size", "Size")}
            {tab === "results" && <th scope="col">Download</th>}
          </tr>
        </thead>
        <tbody>
          {visible.map((pair, index) => (
            <Row
              key={keyOf(pair.plugin, pair.node)}
              tab={tab}
              pair={pair}
              model={model}
              now={now}
              stale={stale}
              repeated={index > 0 && sameText(pair, visible[index - 1]!)}
            />
          ))}
        </tbody>
      </table>
      <div class="rows-foot">
        {found.length > visible.length && (
          <button type="button" onClick={() => setShown(shown + more)}>
            Show more ({count(found.length - visible.length)})
          </button>
        )}
        {words && found.length === 0 && <Empty>No pair contains all of these words.</Empty>}
        {tab === "stragglers" && all > rows.length && (
          <span class="muted">The service lists the worst {count(rows.length)} of {count(all)}; the grid shows all.</span>
        )}
      </div>
    </>
  );
}

function Head(props: {
  by: Column;
  label: string;
  order: { by: Column; descending: boolean };
  setOrder: (order: { by: Column; descending: boolean }) => void;
}): JSX.Element {
  const { by, label, order } = props;
  const chosen = order.by === by;
  const sorting = chosen ? (order.descending ? "descending" : "ascending") : "none";
  return (
    <th scope="col" aria-sort={sorting}>
      <button type="button" class="sort" onClick={() => props.setOrder({ by, descending: chosen && !order.descending })}>
        {label}
        <span aria-hidden="true">{chosen ? (order.descending ? " ↓" : " ↑") : ""}</span>
      </button>
    </th>
  );
}

/** Returns whether two pairs have the same explanation and next step, which is then shown once. */
function sameText(a: Pair, b: Pair): boolean {
  return a.kind === b.kind && a.detail === b.detail && a.error === b.error && a.next === b.next && a.next + a.detail + a.error !== "" && !a.fault && !a.progress;
}

function Row(props: { tab: Tab; pair: Pair; model: RunModel; now: number; stale: boolean; repeated: boolean }): JSX.Element {
  const { tab, pair, model, now, stale, repeated } = props;
  const run = model.status?.run ?? "";
  const since = begin(pair);
  return (
    <tr data-node={pair.node} data-plugin={pair.plugin} data-kind={pair.kind}>
      {(tab === "stragglers" || tab === "failures") && (
        <td data-label={tab === "stragglers" ? "Reason" : "Outcome"}>
          <KindBadge kind={pair.kind} />
        </td>
      )}
      <td data-label="Node">
        <a href={nodeLink(pair.node)}>{pair.node}</a>
      </td>
      <td data-label="Plugin">{pair.plugin}</td>
      {tab !== "waiting" && (
        <td data-label={tab === "stragglers" ? "Since" : "When"}>
          <Time at={since} now={now} />
          {tab === "stragglers" && since > 0 && <div class="muted">{duration((now - since) / 1000)}</div>}
        </td>
      )}
      {tab === "stragglers" && (
        <td data-label="Last heartbeat">
          <Heartbeat pair={pair} now={now} stale={stale} offset={now - Date.now()} />
        </td>
      )}
      {(tab === "stragglers" || tab === "waiting") && (
        <td class="detail" data-label="Detail">
          {repeated ? <As pair={pair} /> : <Detail pair={pair} />}
        </td>
      )}
      {tab === "failures" && (
        <td class="detail" data-label="Reason">
          {repeated && <As pair={pair} />}
          {!repeated && <div class="clamped" title={pair.error || pair.detail}>{pair.error || pair.detail || "no reason was reported"}</div>}
          {!repeated && pair.next && <div class="next">Next: <Prose text={pair.next} /></div>}
        </td>
      )}
      {tab === "results" && <td data-label="Size">{bytes(pair.size)}</td>}
      {tab === "results" && (
        <td data-label="Download">
          <a href={resultPath(run, pair)} download aria-label={`Download the result of ${pair.plugin} on ${pair.node}`}>
            Download
          </a>
        </td>
      )}
    </tr>
  );
}

function As({ pair }: { pair: Pair }): JSX.Element {
  return (
    <span class="muted" title={[pair.error || pair.detail, pair.next].filter(Boolean).join("\n")}>
      as above
    </span>
  );
}

function Detail({ pair }: { pair: Pair }): JSX.Element {
  const progress = progressLine(pair);
  const { fault } = pair;
  return (
    <>
      {pair.detail && <div class="clamped" title={pair.detail}>{pair.detail}</div>}
      {progress && <div class="muted">Last message: {progress}</div>}
      {fault?.message && (
        <div>
          {[fault.check, fault.address].filter(Boolean).join(" at ")}: {fault.message} {fault.nextStep && <em><Prose text={fault.nextStep} /></em>}
        </div>
      )}
      {pair.next && <div class="next">Next: <Prose text={pair.next} /></div>}
    </>
  );
}
