// The program, the adapters and the disk of a node.
import type { JSX } from "preact";
import { Problem } from "../model/api";
import type { Adapter, Attachment, NodeInfo } from "../model/attachment";
import { bytes } from "../model/format";
import { Card, Time } from "./small";

/** Nothing for a relay, and for a name that never attached. */
export function Equipment({ attachment, now }: { attachment: Attachment | Problem; now: number }): JSX.Element | null {
  if (attachment instanceof Problem || !attachment.info) return null;
  const { info } = attachment;
  return (
    <Card title="Adapters and disk" id="equipment" aside={<Measured at={info.measured} now={now} />}>
      <Facts info={info} now={now} />
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
