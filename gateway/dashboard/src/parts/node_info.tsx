// The program, the adapters and the disk of a node.
import type { JSX } from "preact";
import { getJSON, path } from "../model/api";
import { bytes } from "../model/format";
import { nodeInfo, type Adapter, type NodeInfo } from "../model/node_info";
import type { WireAttached } from "../model/wire";
import { usePoll } from "./hooks";
import { Card, Empty, Time } from "./small";

const pollInterval = 10_000; // milliseconds

async function read(node: string, signal: AbortSignal): Promise<{ info: NodeInfo | null }> {
  return { info: nodeInfo(await getJSON<WireAttached>(path`/attached?name=${node}`, signal)) };
}

/** Nothing for a relay, and for a name that never attached. */
export function Equipment({ node, now }: { node: string; now: number }): JSX.Element | null {
  const { value, problem } = usePoll(`attached/${node}`, pollInterval, (signal) => read(node, signal));
  if (value && !value.info) return null;
  return (
    <Card title="Adapters and disk" id="equipment" aside={value?.info && <Measured at={value.info.measured} now={now} />}>
      {problem && <p class="bad-text">Not known: {problem.message}.</p>}
      {!value && !problem && <Empty>Loading.</Empty>}
      {value?.info && <Facts info={value.info} now={now} />}
    </Card>
  );
}

function Measured({ at, now }: { at: number; now: number }): JSX.Element {
  return (
    <span class="muted">
      measured <Time at={at} now={now} />
    </span>
  );
}

function Facts({ info, now }: { info: NodeInfo; now: number }): JSX.Element {
  return (
    <dl class="facts">
      {info.adapters.map((adapter) => (
        <div key={adapter.name} data-adapter={adapter.name}>
          <dt>{adapter.name}</dt>
          <dd>
            <AdapterText adapter={adapter} now={now} />
          </dd>
        </div>
      ))}
      <div data-fact="disk">
        <dt>Free disk space</dt>
        <dd>
          {bytes(info.free)} <span class="muted">of {bytes(info.total)}</span>
        </dd>
      </div>
      <div>
        <dt>Program</dt>
        <dd>{info.version}</dd>
      </div>
    </dl>
  );
}

function AdapterText({ adapter, now }: { adapter: Adapter; now: number }): JSX.Element {
  if (adapter.problem) return <span class="bad-text">{adapter.problem}</span>;
  if (!adapter.version) return <>available</>;
  return (
    <>
      {adapter.version}
      {adapter.since > 0 && (
        <span class="muted">
          {" "}
          since <Time at={adapter.since} now={now} />
        </span>
      )}
    </>
  );
}
