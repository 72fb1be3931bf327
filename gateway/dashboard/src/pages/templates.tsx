// The templates and template types, by name.
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { getPages, unauthenticated } from "../model/api";
import { nameOf } from "../model/format";
import { byName, newestOf, referenceOf, version, type Kind, type Named, type Version } from "../model/template";
import type { WireDocuments } from "../model/wire";
import { documentLink } from "../parts/deployed";
import { usePages } from "../parts/hooks";
import { Card, Empty, ShowMore, Time } from "../parts/small";
import { PollBadge, PollNotice } from "../parts/stale";

const pollInterval = 10_000; // milliseconds
const page = 200; // versions
const shownVersions = 5; // of a name

/** The lists of templates and of types; that of `first` is the first. */
export function TemplatesPage({ first }: { first: Kind }): JSX.Element {
  useEffect(() => {
    document.title = "Templates · Muster";
  }, []);
  const templates = <List key="template" kind="template" title="Templates" command="muster template create -f FILE" />;
  const types = <List key="type" kind="type" title="Template types" command="muster type push FILE" />;
  return (
    <>
      <header class="page-head">
        <div class="page-title">
          <h1>Templates</h1>
        </div>
      </header>
      {first === "type" ? [types, templates] : [templates, types]}
    </>
  );
}

/** Returns the path of the API for the documents of a kind. */
export function collection(kind: Kind): string {
  return kind === "type" ? "/api/v1/template-types" : "/api/v1/templates";
}

async function load(kind: Kind, pages: number, signal: AbortSignal): Promise<{ versions: Version[]; more: boolean }> {
  const listed = (each: WireDocuments) => ((kind === "type" ? each.types : each.templates) ?? []).map((wire) => version(kind, wire));
  const { items: versions, more } = await getPages(collection(kind), page, pages, listed, signal);
  return { versions, more };
}

function List({ kind, title, command }: { kind: Kind; title: string; command: string }): JSX.Element | null {
  const { shown, lastUpdate, problem, now, showMore } = usePages(kind, pollInterval, (pages, signal) => load(kind, pages, signal));
  if (!shown && problem?.status === unauthenticated) return null; // NotSignedIn
  return (
    <Card title={title} id={`${kind}s`} aside={<PollBadge lastUpdate={lastUpdate} />}>
      <PollNotice problem={problem} lastUpdate={lastUpdate} />
      {!shown && !problem && <Empty>Loading.</Empty>}
      {shown?.versions.length === 0 && (
        <Empty>
          There is none yet. Store one: <code>{command}</code>
        </Empty>
      )}
      {shown && shown.versions.length > 0 && <NameTable names={byName(shown.versions)} kind={kind} now={now} />}
      {shown?.more && <ShowMore onShow={showMore} />}
    </Card>
  );
}

function NameTable({ names, kind, now }: { names: Named[]; kind: Kind; now: number }): JSX.Element {
  return (
    <table class="rows">
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col">Versions</th>
          <th scope="col">{kind === "type" ? "Image" : "Type"}</th>
          <th scope="col">Newest</th>
        </tr>
      </thead>
      <tbody>
        {names.map(({ name, versions }) => (
          <NameRow key={name} name={name} versions={versions} kind={kind} now={now} />
        ))}
      </tbody>
    </table>
  );
}

function NameRow({ name, versions, kind, now }: { name: string; versions: Version[]; kind: Kind; now: number }): JSX.Element {
  const newest = newestOf(versions);
  return (
    <tr data-name={name}>
      <td data-label="Name">
        <a href={documentLink(kind, referenceOf(newest))}>{name}</a>
        {newest.adHoc && <span class="tag">ad-hoc</span>}
        {newest.description && <div class="muted">{newest.description}</div>}
      </td>
      <td data-label="Versions">
        <VersionLinks versions={versions.slice(0, shownVersions)} current="" />
        {versions.length > shownVersions && <span class="muted"> and {versions.length - shownVersions} more</span>}
      </td>
      <td data-label={kind === "type" ? "Image" : "Type"}>
        {kind === "type" ? <ImageName image={newest.image} /> : newest.type && <a href={documentLink("type", newest.type)}>{newest.type}</a>}
      </td>
      <td data-label="Newest">
        <Time at={newest.created} now={now} /> <span class="muted">by {nameOf(newest.createdBy)}</span>
      </td>
    </tr>
  );
}

/** The name of an image, with its digest as the title. */
export function ImageName({ image }: { image: string }): JSX.Element {
  return (
    <code title={image}>{image.slice(0, image.indexOf("@") > 0 ? image.indexOf("@") : undefined)}</code>
  );
}

export function VersionLinks({ versions, current }: { versions: Version[]; current: string }): JSX.Element {
  return (
    <span class="versions">
      {versions.map((each) => (
        <a key={each.version} href={documentLink(each.kind, referenceOf(each))} aria-current={each.version === current ? "page" : undefined}>
          {each.version}
        </a>
      ))}
    </span>
  );
}
