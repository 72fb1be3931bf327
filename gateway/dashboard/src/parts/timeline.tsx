// The timeline of a run: outcomes as a chart, and events as a list.
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { count, duration, plural } from "../model/format";
import { isEnded } from "../model/parse";
import type { RunModel } from "../model/run_model";
import { growth, timelineEvents, type Growth } from "../model/timeline";
import { Empty, KindIcon, nodeLink, Time } from "./small";

const steps = 160;
const [width, height] = [800, 120];
const maxEvents = 200;
const page = 12;
const manyPairs = 20_000;

export function Timeline({ model, now }: { model: RunModel; now: number }): JSX.Element {
  const [shown, setShown] = useState(page);
  // Work over all pairs is not repeated with every change: it takes a tenth of a second for 100,000 pairs.
  const moment = Math.floor(now / (model.pairs.size > manyPairs ? 5000 : 1000));
  const { lines, events } = useMemo(
    () => ({ lines: growth(model, steps, now), events: timelineEvents(model, now, maxEvents) }),
    [model, moment, model.complete],
  );
  return (
    <>
      {lines && <Chart lines={lines} model={model} now={now} />}
      {events.length === 0 && <Empty>Nothing has happened yet.</Empty>}
      <ol class="events">
        {events.slice(0, shown).map((event, index) => (
          <li key={`${event.time}/${event.kind}/${event.plugin}/${event.node}/${index}`} class={event.future ? "future" : ""}>
            <Time at={event.time} now={now} />
            <span class="mark">{event.kind ? <KindIcon kind={event.kind} /> : <span class="run-mark" aria-hidden="true" />}</span>
            <span class="what">
              <b>{event.title}</b>
              {event.node && <> <a href={nodeLink(event.node)}>{event.node}</a></>}
              {event.plugin && <span class="muted"> {event.plugin}{event.text && ":"}</span>}
              {event.future && <span class="muted"> in {duration((event.time - now) / 1000)}</span>}
              {event.text && <span class="detail"> {event.text}</span>}
            </span>
          </li>
        ))}
      </ol>
      <div class="rows-foot">
        {events.length > shown && (
          <button type="button" onClick={() => setShown(shown + 50)}>
            Show more ({count(events.length - shown)})
          </button>
        )}
        <span class="muted">Past problems are listed only if they ended while this page was open. The page of a node shows its whole history.</span>
      </div>
    </>
  );
}

function Chart({ lines, model, now }: { lines: Growth; model: RunModel; now: number }): JSX.Element {
  const status = model.status!;
  const estimate = isEnded(status.state) ? null : status.estimate;
  // The axis extends to the end of the estimate; the deadline is often hours away and is in the list.
  const axisEnd = Math.max(lines.end, estimate?.latest ?? 0);
  const x = (time: number) => (width * (time - lines.begin)) / (axisEnd - lines.begin);
  const y = (value: number) => height - (height * value) / Math.max(1, lines.planned);
  const area = (below: number[], above: number[]) => {
    const at = (index: number) => x(lines.begin + ((index + 1) * (lines.end - lines.begin)) / steps).toFixed(1);
    const upper = above.map((value, index) => `${at(index)},${y(value).toFixed(1)}`);
    const lower = below.map((value, index) => `${at(index)},${y(value).toFixed(1)}`).reverse();
    return `M0,${height}L${upper.join("L")}L${lower.join("L")}Z`;
  };
  const none = lines.genuine.map(() => 0);
  const withErrors = lines.genuine.map((value, index) => value + lines.errors[index]!);
  const all = withErrors.map((value, index) => value + lines.timedOut[index]!);
  const label = `Outcomes over ${duration((lines.end - lines.begin) / 1000)}: ${count(lines.genuine.at(-1)!)} genuine, ${count(lines.errors.at(-1)!)} errors, ${count(lines.timedOut.at(-1)!)} timed out, of ${count(lines.planned)}`;
  return (
    <figure class="chart">
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={label}>
        {estimate && estimate.latest > now && (
          <rect class="estimate" x={x(Math.max(now, estimate.earliest))} y="0" width={Math.max(2, x(estimate.latest) - x(Math.max(now, estimate.earliest)))} height={height} />
        )}
        <path class="kind-genuine" d={area(none, lines.genuine)} />
        <path class="kind-error" d={area(lines.genuine, withErrors)} />
        <path class="kind-timed-out" d={area(withErrors, all)} />
        {!isEnded(status.state) && <line class="now" x1={x(now)} x2={x(now)} y1="0" y2={height} />}
      </svg>
      <figcaption>
        <Time at={lines.begin} now={now} />
        <span>
          {plural(lines.planned, "pair")} from bottom to top{estimate && "; shaded: estimated end"}
          {lines.timeless > 0 && `; not shown: ${count(lines.timeless)} from before the status service started`}
        </span>
        <Time at={axisEnd} now={now} />
      </figcaption>
    </figure>
  );
}
