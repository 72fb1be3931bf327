// The output of a deployment, as it arrives.
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { count } from "../model/format";
import { shown, type LogLine } from "../model/job_log";
import { useJobLog } from "./hooks";
import { Card, Empty } from "./small";
import { LinkBadge, LinkNotice } from "./stale";

export interface LogProps {
  deployment: string;
  job: string;
  /** Empty: the output of all nodes. */
  node: string;
  /** Whether the deployment is on one node alone. */
  single: boolean;
  onAll: () => void;
  onUnreachable: (texts: string[]) => void;
}

const nearEnd = 40; // pixels
const shownLines = 1000;

export function LogCard({ deployment, job, node, single, onAll, onUnreachable }: LogProps): JSX.Element {
  const { model, watcher } = useJobLog(job, node);
  const { link } = watcher;
  const lost = model.unreachable.join("\n");
  useEffect(() => onUnreachable(lost ? lost.split("\n") : []), [lost]);
  const missing = link.state === "refused" && link.problem.status === 404;
  const lines = model.lines.slice(-shownLines);
  const dropped = model.dropped + model.lines.length - lines.length;
  return (
    <Card title={node ? `Log of ${node}` : "Log"} id="log" aside={<LinkBadge link={link} />}>
      {!missing && <LinkNotice watcher={watcher} />}
      {node && (
        <div class="choices">
          <button type="button" onClick={onAll}>
            Show all nodes
          </button>
        </div>
      )}
      {missing && <Empty>The root relay has no output of this deployment: it refused the command, or has removed the output.</Empty>}
      {!missing && model.lines.length === 0 && link.state !== "connecting" && (
        <Empty>{link.state === "ended" ? "There is no output." : "There is no output yet."}</Empty>
      )}
      {!missing && model.lines.length === 0 && link.state === "connecting" && <Empty>Loading the output.</Empty>}
      {dropped > 0 && (
        <p class="hint">
          {count(dropped)} earlier lines are not shown. Print all: <code>muster deployment logs {deployment}</code>
        </p>
      )}
      {lines.length > 0 && <Lines lines={lines} withNode={!single && !node} />}
    </Card>
  );
}

// Stays at the end unless the reader has scrolled up.
function Lines({ lines, withNode }: { lines: LogLine[]; withNode: boolean }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const onScroll = () => {
    if (!box.current) return;
    const { scrollHeight, scrollTop, clientHeight } = box.current;
    atEnd.current = scrollHeight - scrollTop - clientHeight < nearEnd;
  };
  useEffect(() => {
    // The effect may run after the page was left.
    if (box.current && atEnd.current) box.current.scrollTop = box.current.scrollHeight;
  });
  return (
    <div class="log" role="log" aria-live="off" aria-label="Log" tabIndex={0} ref={box} onScroll={onScroll}>
      {lines.map((line) => (
        <div key={line.number} class={`log-line log-${line.stream}`}>
          {withNode && line.node && <span class="log-node">{line.node}</span>}
          {line.stream === "stderr" && <span class="hidden">stderr: </span>}
          <span>{shown(line)}</span>
        </div>
      ))}
    </div>
  );
}
