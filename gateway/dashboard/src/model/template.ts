// Template types and templates for the pages, read from their documents (docs/templates.md).
import { member, members } from "./exact_json";
import { text, time } from "./parse";
import { faults, type Schema } from "./schema";
import { source, type Source } from "./source";
import type { WireDocument } from "./wire";

export type Kind = "type" | "template";

export interface Version {
  kind: Kind;
  name: string;
  version: string;
  description: string;
  /** NAME@VERSION of the type of a template; otherwise empty. */
  type: string;
  /** What containers run; empty: that of its type. */
  image: string;
  adHoc: boolean;
  createdBy: string;
  created: number;
}

export type Delegation = "fixed" | "default" | "delegated";

export interface Parameter {
  name: string;
  description: string;
  /** The schemas that a value must match: that of the type, that of the template. The last one is the narrowest. */
  schemas: Schema[];
  delegation: Delegation;
  /** JSON, as its author wrote it; null: none. */
  value: string | null;
  /** The document that set the value: "type", "type default", "template" or "template default". */
  source: string;
  required: boolean;
  sensitive: boolean;
}

export interface Output {
  name: string;
  description: string;
  schema: Schema;
  required: boolean;
  sensitive: boolean;
  of: Kind;
}

/** A secret that the container reads. */
export interface Secret {
  name: string;
  description: string;
  required: boolean;
}

export interface Limit {
  name: string;
  value: string;
  of: Kind;
}

/** A version with what its documents decide. Its image is never empty. */
export interface Described extends Version {
  /** The image of the type, which the built one extends, and the origin of the files; null: the template was not built. */
  built: { base: string; source: Source | null } | null;
  sha256: string;
  command: string[];
  actions: string[];
  network: string;
  limits: Limit[];
  parameters: Parameter[];
  outputs: Output[];
  secrets: Secret[];
}

export function version(kind: Kind, wire: WireDocument): Version {
  return {
    kind,
    name: text(wire.name),
    version: text(wire.version),
    description: text(wire.description),
    type: text(wire.type),
    image: text(wire.image),
    adHoc: wire.adHoc ?? false,
    createdBy: text(wire.createdBy),
    created: time(wire.createTime),
  };
}

/** NAME@VERSION */
export function referenceOf(version: Version): string {
  return `${version.name}@${version.version}`;
}

export interface Named {
  kind: Kind;
  name: string;
  /** The newest first. */
  versions: Version[];
}

/** Returns what NAME alone stands for: the newest release, or without one the newest pre-release. */
export function newestOf(versions: Version[]): Version {
  return versions.find((each) => !each.version.includes("-")) ?? versions[0]!;
}

/** Groups versions, which are ordered by name. */
export function byName(versions: Version[]): Named[] {
  const groups: Named[] = [];
  for (const each of versions) {
    const last = groups.at(-1);
    if (last?.name === each.name) last.versions.push(each);
    else groups.push({ kind: each.kind, name: each.name, versions: [each] });
  }
  return groups;
}

// A document as the texts of its members.
class Document {
  private readonly fields: Map<string, string>;

  constructor(
    readonly kind: Kind,
    wire: WireDocument,
  ) {
    this.fields = members(wire.document || "{}");
  }

  json(field: string): string | null {
    return this.fields.get(field) ?? null;
  }

  words(field: string): string[] {
    return [...this.parts(field).values()].map((each) => plain(each));
  }

  parts(field: string): Map<string, string> {
    return members(this.fields.get(field) ?? "{}");
  }

  schema(described: string): Schema {
    return { json: member(described, "schema") ?? "true", definitions: this.json("definitions") ?? "{}" };
  }

  limits(): Limit[] {
    return [...this.parts("limits")].map(([name, value]) => ({ name: text(name), value: plain(value), of: this.kind }));
  }

  secrets(): Secret[] {
    return [...this.parts("secrets")].map(([name, json]) => ({
      name: text(name),
      description: plain(member(json, "description") ?? '""'),
      required: member(json, "required") === "true",
    }));
  }

  outputs(): Output[] {
    return [...this.parts("outputs")].map(([name, json]) => ({
      name: text(name),
      description: plain(member(json, "description") ?? '""'),
      schema: this.schema(json),
      required: member(json, "required") === "true",
      sensitive: member(json, "sensitive") === "true",
      of: this.kind,
    }));
  }
}

// A JSON text without its quotes, or other JSON as it is.
function plain(json: string): string {
  const value: unknown = JSON.parse(json);
  return text(typeof value === "string" ? value : json);
}

/** Whether the services still accept the document, and that of its type: an earlier Muster may have stored one that they reject. */
export function isAccepted(kind: Kind, wire: WireDocument, typeOf: WireDocument | null): boolean {
  return Boolean(kind === "type" ? wire.image : wire.type && typeOf?.image);
}

/**
 * Returns a version with what its document decides, together with that of its type if it is a template. The services
 * merge and check the documents themselves; a template that is stored is narrower than its type.
 */
export function describe(kind: Kind, wire: WireDocument, typeOf: WireDocument | null): Described {
  const own = new Document(kind, wire);
  const type = typeOf ? new Document("type", typeOf) : own;
  const parameters = new Map<string, Parameter>();
  for (const [name, json] of type.parts("parameters")) parameters.set(name, merge(name, type, json));
  if (typeOf) for (const [name, json] of own.parts("parameters")) parameters.set(name, merge(name, own, json, parameters.get(name)));
  const limits = new Map(type.limits().map((limit) => [limit.name, limit]));
  for (const limit of own.limits()) limits.set(limit.name, limit);
  const network = type.json("network");
  const actions = type.words("actions");
  return {
    ...version(kind, wire),
    image: text(wire.image || typeOf?.image),
    built: typeOf && wire.image ? { base: text(typeOf.image), source: source(wire.source) } : null,
    adHoc: (typeOf ?? wire).adHoc ?? false,
    sha256: text(wire.documentSha256),
    command: type.words("command"),
    actions: actions.length > 0 ? actions : ["deploy"],
    network: network ? plain(network) : "none",
    limits: [...limits.values()],
    parameters: [...parameters.values()].sort((a, b) => (a.name < b.name ? -1 : 1)),
    outputs: typeOf ? [...type.outputs(), ...own.outputs()] : own.outputs(),
    secrets: mergeSecrets(type.secrets(), typeOf ? own.secrets() : []),
  };
}

// Returns the secrets by name. A template may add secrets, and require those of its type.
function mergeSecrets(type: Secret[], own: Secret[]): Secret[] {
  const secrets = new Map(type.map((secret) => [secret.name, secret]));
  for (const secret of own) {
    const of = secrets.get(secret.name);
    secrets.set(secret.name, of ? { ...of, description: secret.description || of.description, required: secret.required || of.required } : secret);
  }
  return [...secrets.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

// Applies the parameter of a document to that of its type, if the type has it.
function merge(name: string, document: Document, json: string, of?: Parameter): Parameter {
  const value = member(json, "value");
  const word = member(json, "delegation");
  const delegation = word ? (JSON.parse(word) as Delegation) : value === null ? "delegated" : "default";
  const described = member(json, "description");
  const own: Parameter = {
    name: text(name),
    description: described ? plain(described) : of?.description ?? "",
    schemas: [...(of?.schemas ?? []), ...(member(json, "schema") || !of ? [document.schema(json)] : [])],
    delegation,
    value,
    source: value === null ? "" : delegation === "fixed" ? document.kind : `${document.kind} default`,
    required: member(json, "required") === "true",
    sensitive: member(json, "sensitive") === "true" || (of?.sensitive ?? false),
  };
  if (!of || delegation !== "delegated") return own;
  // A default of the type remains, unless the schema of the template does not admit it.
  const keeps = of.value !== null && faults(own.schemas.at(-1)!, of.value).length === 0;
  return {
    ...own,
    delegation: keeps ? of.delegation : "delegated",
    value: keeps ? of.value : null,
    source: keeps ? of.source : "",
    required: own.required || of.required,
  };
}
