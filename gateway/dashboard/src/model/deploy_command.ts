// Composes the command that creates a deployment. An operator's key signs a deployment, and browsers have no such key.
import { faults, inputOf } from "./schema";
import { referenceOf, type Described, type Parameter } from "./template";

/** What the form contains. */
export interface Wanted {
  /** The texts of the inputs by parameter; without an entry, the parameter is not set. */
  values: ReadonlyMap<string, string>;
  /** SECRET or SECRET@VERSION by the name in the documents; without an entry, the container does not get the secret. */
  secrets: ReadonlyMap<string, string>;
  target: "node" | "label" | "all";
  /** Names of nodes or labels, separated by commas or spaces. */
  targets: string;
  action: string;
  /** The path of a folder or file, for an ad-hoc type. */
  files: string;
  /** Empty: none. */
  workspace: string;
  wait: boolean;
}

export interface Composed {
  /** Empty while something is missing or wrong. */
  command: string;
  /** What is missing or wrong: by parameter, by `ofSecret`, and `ofTargets`, `ofFiles` and `ofWorkspace`. */
  problems: Map<string, string>;
}

export const ofTargets = ".targets";
export const ofFiles = ".files";
export const ofWorkspace = ".workspace";

export function ofSecret(name: string): string {
  return `.secret ${name}`;
}

// Characters that a terminal or a shell could take for something else: those of `text` in parse.ts, and ends of lines.
const special = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
// A stored secret, or one of Vault, with or without a version. The command checks it again.
const secretReference = /^(?:[A-Za-z0-9_-][A-Za-z0-9._-]*(?:\/[A-Za-z0-9_-][A-Za-z0-9._-]*)*|vault:[A-Za-z0-9_-][A-Za-z0-9._-]*(?:\/[A-Za-z0-9_-][A-Za-z0-9._-]*)*#[A-Za-z0-9_-][A-Za-z0-9._-]*)(?:@[1-9][0-9]{0,17})?$/;
const maxValue = 32 << 10; // characters of all values together

/** Returns a word as a POSIX shell reads it. */
export function shellWord(word: string): string {
  return /^[A-Za-z0-9@%+=:,./_-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

function escaped(json: string): string {
  return json.replace(special, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Whether the value is read from a file, so that it is neither in the command nor in the history of the shell. */
export function isFromFile(parameter: Parameter): boolean {
  return parameter.sensitive && inputOf(parameter.schemas.at(-1)!).kind === "text";
}

/** Returns the option that sets a parameter to the text of its input, or what is wrong with it. */
function option(parameter: Parameter, entered: string): { words: string[] } | { problem: string } {
  const { name } = parameter;
  if (isFromFile(parameter)) {
    return entered.match(special) ? { problem: "a path has no control characters" } : { words: ["--set-file", `${name}=${entered}`] };
  }
  const { kind } = inputOf(parameter.schemas.at(-1)!);
  const json = kind === "text" ? escaped(JSON.stringify(entered)) : entered.trim();
  try {
    JSON.parse(json);
  } catch (error) {
    return { problem: kind === "json" ? `is not JSON: ${(error as Error).message}` : "is not a number" };
  }
  for (const schema of parameter.schemas) {
    const [problem] = faults(schema, json);
    if (problem) return { problem };
  }
  const value: unknown = JSON.parse(json);
  if (typeof value === "string" && !value.match(special)) return { words: ["--set-text", `${name}=${value}`] };
  return { words: ["--set", `${name}=${escaped(oneLine(json))}`] };
}

// Spaces between the tokens may be ends of lines; texts have none.
function oneLine(json: string): string {
  return json.replace(/"(?:[^"\\]|\\.)*"|\s+/g, (part) => (part.startsWith('"') ? part : " "));
}

/** Composes the command, or states what is missing. */
export function compose(subject: Described, wanted: Wanted): Composed {
  const problems = new Map<string, string>();
  const words = ["muster", "deploy"];
  const files = wanted.files.trim();
  if (subject.adHoc && !files) problems.set(ofFiles, "a folder or file is required");
  if (files.match(special)) problems.set(ofFiles, "a path has no control characters");
  if (subject.kind === "template") words.push(referenceOf(subject), ...(subject.adHoc ? ["--files", files] : []));
  else words.push(...(subject.adHoc ? [files.startsWith("-") ? `./${files}` : files] : []), "--type", referenceOf(subject));
  if (wanted.action !== "deploy") words.push("--action", wanted.action);
  words.push(...targets(wanted, problems));
  let size = 0;
  for (const parameter of subject.parameters) {
    const entered = wanted.values.get(parameter.name);
    if (entered === undefined || parameter.delegation === "fixed") {
      if (parameter.required && parameter.value === null) problems.set(parameter.name, "a value is required");
      continue;
    }
    const result = option(parameter, entered);
    if ("problem" in result) problems.set(parameter.name, result.problem);
    else words.push(...result.words);
    size += entered.length;
    if (size > maxValue) problems.set(parameter.name, "the values are more than 32 KiB together");
  }
  words.push(...secrets(subject, wanted, problems), ...workspace(wanted, problems));
  if (wanted.wait) words.push("--wait");
  return { command: problems.size > 0 ? "" : words.map(shellWord).join(" "), problems };
}

function secrets(subject: Described, wanted: Wanted, problems: Map<string, string>): string[] {
  const words: string[] = [];
  for (const { name, required } of subject.secrets) {
    const reference = wanted.secrets.get(name)?.trim() ?? "";
    if (reference === "") {
      if (required) problems.set(ofSecret(name), "the name of a secret is required");
    } else if (!secretReference.test(reference)) {
      problems.set(ofSecret(name), "is not the name of a secret, such as prod/db, prod/db@3 or vault:prod/db#password");
    } else {
      words.push("--secret", `${name}=${reference}`);
    }
  }
  return words;
}

// A name that is no option of the command.
const plainName = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,252}$/;

function workspace(wanted: Wanted, problems: Map<string, string>): string[] {
  const name = wanted.workspace.trim();
  if (name === "") return [];
  const several = wanted.target === "all" || (wanted.target === "node" && wordsOf(wanted.targets).length > 1);
  if (!plainName.test(name)) problems.set(ofWorkspace, `${name} is not the name of a workspace`);
  else if (several) problems.set(ofWorkspace, "a deployment with a workspace runs on one node");
  return ["--workspace", name];
}

function wordsOf(entered: string): string[] {
  return entered.split(/[\s,]+/).filter(Boolean);
}

function targets(wanted: Wanted, problems: Map<string, string>): string[] {
  if (wanted.target === "all") return ["--all"];
  const names = wordsOf(wanted.targets);
  const isLabel = wanted.target === "label";
  const wrong = names.find((name) => (isLabel ? !/^[^=]+=/.test(name) || name.match(special) : !plainName.test(name)));
  if (names.length === 0) problems.set(ofTargets, isLabel ? "a label is required" : "a node is required");
  else if (wrong !== undefined) problems.set(ofTargets, isLabel ? `${wrong} is not KEY=VALUE` : `${wrong} is not the name of a node`);
  return isLabel ? names.flatMap((name) => ["--label", name]) : ["--node", names.join(",")];
}
