// One version of a template or a template type: what it decides, and a form that deploys it.
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { getJSON } from "../model/api";
import { nameOf } from "../model/format";
import { inline } from "../model/exact_json";
import { describe as wordsOf, isDescribed } from "../model/schema";
import { describe, isAccepted, referenceOf, version, type Described, type Kind, type Output, type Parameter, type Version } from "../model/template";
import type { WireDocument, WireDocuments } from "../model/wire";
import { DeployForm } from "../parts/deploy_form";
import { documentLink, SourceText, useFirst, Value } from "../parts/deployed";
import { usePoll } from "../parts/hooks";
import { Card, Empty, Notice, Time } from "../parts/small";
import { PollBadge, PollNotice } from "../parts/stale";
import { collection, VersionLinks } from "./templates";

const pollInterval = 30_000; // milliseconds: a version never changes, and others may appear
const maxVersions = 100;
const shownParameters = 50;

interface Loaded {
  described: Described;
  accepted: boolean;
  versions: Version[];
  more: boolean;
}

async function load(kind: Kind, reference: string, signal: AbortSignal): Promise<Loaded> {
  const of = (each: Kind, name: string) => getJSON<WireDocument>(`${collection(each)}/${encodeURIComponent(name)}`, signal);
  const wire = await of(kind, reference);
  const query = new URLSearchParams({ name: wire.name ?? "", page_size: String(maxVersions) });
  const [type, list] = await Promise.all([
    kind === "template" && wire.type ? of("type", wire.type) : null,
    getJSON<WireDocuments>(`${collection(kind)}?${query}`, signal),
  ]);
  const versions = (kind === "type" ? list.types : list.templates) ?? [];
  const accepted = isAccepted(kind, wire, type);
  const described = accepted ? describe(kind, wire, type) : describe(kind, { ...wire, document: "{}" }, null);
  return { described, accepted, versions: versions.map((each) => version(kind, each)), more: Boolean(list.nextPageToken) };
}

export function TemplatePage({ kind, reference }: { kind: Kind; reference: string }): JSX.Element {
  const { value, lastUpdate, problem } = usePoll(`${kind}/${reference}`, pollInterval, (signal) => load(kind, reference, signal));
  const title = value ? referenceOf(value.described) : reference;
  useEffect(() => {
    document.title = `${title} · Muster`;
  }, [title]);
  const now = problem && lastUpdate ? lastUpdate : Date.now();
  return (
    <>
      <header class="page-head">
        <nav class="crumbs" aria-label="You are here">
          <a href="#/templates">Templates</a> <span aria-hidden="true">/</span> <span class="mono">{title}</span>
        </nav>
        <div class="page-title">
          <h1>{title}</h1>
          {value?.described.adHoc && <span class="tag">ad-hoc</span>}
          <PollBadge lastUpdate={lastUpdate} />
        </div>
        {value?.described.description && <p class="sub">{value.described.description}</p>}
      </header>
      <PollNotice problem={problem} lastUpdate={lastUpdate} />
      {!value && !problem && <Empty>Loading {reference}.</Empty>}
      {value && (
        <>
          <Facts loaded={value} now={now} />
          {value.accepted ? (
            <>
              <Parameters parameters={value.described.parameters} />
              <DeployForm key={title} subject={value.described} />
              <Outputs outputs={value.described.outputs} />
              <Limits described={value.described} />
            </>
          ) : (
            <Notice tone="warn" title="The document is not valid">
              An earlier Muster has stored it, or that of its type. It cannot be deployed. Store a corrected version; <code>muster deploy</code> names the mistakes.
            </Notice>
          )}
        </>
      )}
    </>
  );
}

function Facts({ loaded: { described, versions, more }, now }: { loaded: Loaded; now: number }): JSX.Element {
  return (
    <section class="card" aria-label="Version">
      <dl class="facts">
        {described.type && (
          <div>
            <dt>Type</dt>
            <dd>
              <a href={documentLink("type", described.type)}>{described.type}</a>
            </dd>
          </div>
        )}
        <div>
          <dt>Stored</dt>
          <dd>
            <Time at={described.created} now={now} /> by <span title={described.createdBy}>{nameOf(described.createdBy)}</span>
          </dd>
        </div>
        <div>
          <dt>Versions</dt>
          <dd>
            <VersionLinks versions={versions} current={described.version} />
            {more && <span class="muted"> and older ones</span>}
          </dd>
        </div>
        <div>
          <dt>Actions</dt>
          <dd>{described.actions.join(", ")}</dd>
        </div>
        <div>
          <dt>Network of the container</dt>
          <dd>{described.network}</dd>
        </div>
        {described.command.length > 0 && (
          <div>
            <dt>Command</dt>
            <dd>
              <code>{described.command.join(" ")}</code>
            </dd>
          </div>
        )}
        <div class="wide" data-test="image">
          <dt>{described.built ? "Image, built for this version" : "Image"}</dt>
          <dd>
            <code>{described.image}</code>
          </dd>
        </div>
        {described.built && (
          <div class="wide" data-test="base">
            <dt>Base, the image of the type</dt>
            <dd>
              <code>{described.built.base}</code>
            </dd>
          </div>
        )}
        {described.built?.source && (
          <div class="wide" data-test="source">
            <dt>Source</dt>
            <dd>
              <SourceText source={described.built.source} />
            </dd>
          </div>
        )}
        <div class="wide">
          <dt>SHA-256 of the document</dt>
          <dd>
            <code>{described.sha256}</code>
          </dd>
        </div>
      </dl>
    </section>
  );
}

const delegations = {
  fixed: "Nothing changes the value",
  default: "A deployment may set another value",
  delegated: "A deployment sets the value",
};

function Parameters({ parameters }: { parameters: Parameter[] }): JSX.Element {
  const [rows, foot] = useFirst(parameters, shownParameters, "parameters");
  return (
    <Card title="Parameters" id="parameters">
      {parameters.length === 0 && <Empty>It has no parameters.</Empty>}
      {rows.length > 0 && (
        <table class="rows">
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Values</th>
              <th scope="col">Delegation</th>
              <th scope="col">Value</th>
              <th scope="col">Set by</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((parameter) => (
              <tr key={parameter.name} data-parameter={parameter.name}>
                <td data-label="Name">
                  <b>{parameter.name}</b>
                  {parameter.required && <span class="tag">required</span>}
                  {parameter.sensitive && <span class="tag" title="Muster never shows the value">sensitive</span>}
                  {parameter.description && <div class="muted">{parameter.description}</div>}
                </td>
                <td data-label="Values">
                  <SchemaText parameter={parameter} />
                </td>
                <td data-label="Delegation">
                  <span title={delegations[parameter.delegation]}>{parameter.delegation}</span>
                </td>
                <td data-label="Value">
                  <Value json={parameter.value === null ? null : inline(parameter.value)} sensitive={parameter.sensitive && parameter.value !== null} />
                </td>
                <td data-label="Set by">{parameter.source || <span class="muted">the deployment</span>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {foot}
    </Card>
  );
}

function SchemaText({ parameter }: { parameter: Parameter }): JSX.Element {
  const schema = parameter.schemas.at(-1)!;
  return (
    <>
      <div>{wordsOf(schema)}</div>
      {!isDescribed(schema) && (
        <details>
          <summary>Schema</summary>
          <code>{inline(schema.json)}</code>
        </details>
      )}
    </>
  );
}

function Outputs({ outputs }: { outputs: Output[] }): JSX.Element {
  return (
    <Card title="Outputs" id="outputs">
      {outputs.length === 0 && <Empty>It has no outputs.</Empty>}
      {outputs.length > 0 && (
        <table class="rows">
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Values</th>
              <th scope="col">Declared by</th>
            </tr>
          </thead>
          <tbody>
            {outputs.map((output) => (
              <tr key={output.name} data-output={output.name}>
                <td data-label="Name">
                  <b>{output.name}</b>
                  {output.required && <span class="tag">required</span>}
                  {output.sensitive && <span class="tag">sensitive</span>}
                  {output.description && <div class="muted">{output.description}</div>}
                </td>
                <td data-label="Values">{wordsOf(output.schema)}</td>
                <td data-label="Declared by">{output.of}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Card>
  );
}

const limitWords: Record<string, string> = { cpus: "CPUs", memory: "Memory", output: "Output", processes: "Processes", time: "Time" };

function Limits({ described }: { described: Described }): JSX.Element {
  return (
    <Card title="Limits" id="limits" aside={<span class="muted">The policy of a node bounds them, and sets the others.</span>}>
      {described.limits.length === 0 && <Empty>The policies of the nodes set all limits.</Empty>}
      <dl class="facts">
        {described.limits.map(({ name, value, of }) => (
          <div key={name} data-limit={name}>
            <dt>{limitWords[name] ?? name}</dt>
            <dd>
              {value} <span class="muted">({of})</span>
            </dd>
          </div>
        ))}
      </dl>
    </Card>
  );
}
