// The conformance of a node: its state, and its probes.
import type { JSX } from "preact";
import { getJSON, path, Problem, unauthenticated } from "../model/api";
import { conformance, type Conformance as Report, type Status } from "../model/conformance";
import { shellWord } from "../model/deploy_command";
import { plural, shortId } from "../model/format";
import type { WireConformance } from "../model/wire";
import { CommandLine } from "./command";
import { usePoll } from "./hooks";
import { Card, Empty, Time } from "./small";

const pollInterval = 10_000; // milliseconds

/** Returns null for a node without a report. */
async function read(node: string, signal: AbortSignal): Promise<{ report: Report | null }> {
  try {
    return { report: conformance(await getJSON<WireConformance>(path`/conformance/${node}`, signal)) };
  } catch (error) {
    if (error instanceof Problem && error.reason === "NO_CONFORMANCE_REPORT") return { report: null };
    throw error;
  }
}

/** `runs`: the node can run the probes. */
export function Conformance({ node, runs, now }: { node: string; runs: boolean; now: number }): JSX.Element | null {
  const { value, problem } = usePoll(`conformance/${node}`, pollInterval, (signal) => read(node, signal));
  if (!runs && !value?.report) return null;
  return (
    <Card title="Conformance" id="conformance" aside={value?.report && <span class="muted">{stateText(value.report)}</span>}>
      {problem && problem.status !== unauthenticated && <p class="bad-text">Not known: {problem.message}.</p>}
      {!value && !problem && <Empty>Loading the report.</Empty>}
      {value && !value.report && (
        <>
          <Empty>The node has no report. This command compares its containers with the contract of deployments:</Empty>
          <CommandLine command={`muster conformance run --node ${shellWord(node)}`} label="The command that runs the probes" />
        </>
      )}
      {value?.report && <Probes report={value.report} now={now} />}
    </Card>
  );
}

function stateText({ state, differences }: Report): string {
  switch (state) {
    case "conformant":
      return "conformant: the baseline admits deployments";
    case "different":
      return `different from the baseline in ${plural(differences.length, "probe")}: no deployments`;
    case "outdated":
      return "the report is too old: no deployments";
    case "no-baseline":
      return "there is no baseline";
    default:
      return state;
  }
}

const icons: Record<Status, string> = { fail: "✗", warn: "!", pass: "✓", skip: "–", unknown: "?" };

function Probes({ report, now }: { report: Report; now: number }): JSX.Element {
  return (
    <>
      <p class="muted">
        {report.type}, reported <Time at={report.reported} now={now} />, in{" "}
        <a class="mono" href={`#/deployments/${encodeURIComponent(report.deployment)}`}>
          {shortId(report.deployment)}
        </a>
      </p>
      <table class="rows">
        <thead>
          <tr>
            <th scope="col">Probe</th>
            <th scope="col">Status</th>
            <th scope="col">Expected</th>
            <th scope="col">Measured</th>
          </tr>
        </thead>
        <tbody>
          {report.probes.map((probe) => (
            <tr key={probe.id} data-probe={probe.id} data-status={probe.status}>
              <td class="mono" data-label="Probe">
                {probe.id}
              </td>
              <td class={probe.status === "fail" || report.differences.includes(probe.id) ? "bad-text" : ""} data-label="Status">
                <span aria-hidden="true">{icons[probe.status]}</span> {probe.status}
                {report.differences.includes(probe.id) && ", differs from the baseline"}
              </td>
              <td data-label="Expected">{probe.expected}</td>
              <td class="detail" data-label="Measured">
                {probe.finding}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
