// JSON Schema of parameters: words for people, inputs of a form, and a check of values. The check knows the common
// keywords only: the services and the nodes check each value by the whole schema.
import { inline, member, members } from "./exact_json";

/** A schema as JSON text, and the definitions that its references name. */
export interface Schema {
  json: string;
  /** A JSON object. */
  definitions: string;
}

/** The input of a form for a value. */
export type Input = { kind: "choice"; options: string[] } | { kind: "boolean" | "integer" | "number" | "text" | "json" };

type Keywords = Record<string, unknown>;

const longestChain = 16; // references
const deepestWords = 3; // levels of lists that are described
const referenced = /^#\/definitions\/([^/~%]+)$/;

/** Follows references at the top of a schema. */
function resolve(schema: Schema): Schema {
  let { json } = schema;
  for (let n = 0; n < longestChain; n++) {
    const reference = member(json, "$ref");
    const name = reference && referenced.exec(JSON.parse(reference) as string)?.[1];
    const target = name && member(schema.definitions, name);
    if (!target) break;
    json = target;
  }
  return { ...schema, json };
}

function keywordsOf(schema: Schema): Keywords {
  const value: unknown = JSON.parse(schema.json);
  return typeof value === "object" && value !== null ? (value as Keywords) : {};
}

function typesOf(keywords: Keywords): string[] {
  const { type } = keywords;
  return Array.isArray(type) ? type.map(String) : typeof type === "string" ? [type] : [];
}

export function inputOf(schema: Schema): Input {
  const resolved = resolve(schema);
  const options = member(resolved.json, "enum");
  if (options) return { kind: "choice", options: [...members(options).values()] };
  const only = member(resolved.json, "const");
  if (only) return { kind: "choice", options: [only] };
  const [type, ...more] = typesOf(keywordsOf(resolved));
  if (more.length > 0) return { kind: "json" };
  switch (type) {
    case "string":
      return { kind: "text" };
    case "boolean":
    case "integer":
    case "number":
      return { kind: type };
    default:
      return { kind: "json" };
  }
}

const words: Record<string, string> = { string: "text", boolean: "true or false", array: "list", null: "null" };
const bounds: [keyword: string, before: string, after: string][] = [
  ["minimum", "at least ", ""],
  ["exclusiveMinimum", "more than ", ""],
  ["maximum", "at most ", ""],
  ["exclusiveMaximum", "less than ", ""],
  ["multipleOf", "a multiple of ", ""],
  ["minLength", "at least ", " characters"],
  ["maxLength", "at most ", " characters"],
  ["minItems", "at least ", " elements"],
  ["maxItems", "at most ", " elements"],
  ["pattern", "matches ", ""],
  ["format", "format ", ""],
];

/** Describes a schema in words: "text, at most 20 characters". */
export function describe(schema: Schema, depth = 0): string {
  const resolved = resolve(schema);
  const own = members(resolved.json);
  const keywords = keywordsOf(resolved);
  const parts: string[] = [];
  const options = own.get("enum");
  if (options) parts.push(`one of ${[...members(options).values()].map(inline).join(", ")}`);
  else if (own.has("const")) parts.push(`only ${inline(own.get("const")!)}`);
  else parts.push(typesOf(keywords).map((type) => words[type] ?? type).join(" or ") || "any value");
  const items = own.get("items");
  if (items?.startsWith("{") && depth < deepestWords) {
    const each = describe({ ...resolved, json: items }, depth + 1);
    parts[0] += each.includes(", ") ? ` of (${each})` : ` of ${each}`;
  }
  const properties = own.get("properties");
  if (properties) parts[0] += ` with ${[...members(properties).keys()].join(", ")}`;
  for (const [keyword, before, after] of bounds) {
    const bound = own.get(keyword);
    if (bound) parts.push(before + (typeof keywords[keyword] === "string" ? String(keywords[keyword]) : bound) + (bound === "1" ? after.replace(/s$/, "") : after));
  }
  return parts.join(", ");
}

const described = new Set(["type", "enum", "const", "items", "$ref", ...bounds.map(([keyword]) => keyword)]);

/** Returns whether `describe` says all of a schema. */
export function isDescribed(schema: Schema, depth = 0): boolean {
  if (depth > deepestWords) return false;
  const own = members(resolve(schema).json);
  const items = own.get("items");
  return [...own.keys()].every((keyword) => described.has(keyword)) && (!items || (items.startsWith("{") && isDescribed({ ...schema, json: items }, depth + 1)));
}

/** Returns what is wrong with a value, each with its place; empty: the known keywords admit it. */
export function faults(schema: Schema, json: string, place = ""): string[] {
  const resolved = resolve(schema);
  if (resolved.json === "false") return [`${place}no value is allowed`];
  const own = members(resolved.json);
  const keywords = keywordsOf(resolved);
  const value: unknown = JSON.parse(json);
  const found: string[] = [];
  const types = typesOf(keywords);
  if (types.length > 0 && !types.some((type) => isOf(type, value))) {
    return [`${place}is not ${types.map((type) => words[type] ?? type).join(" or ")}`];
  }
  const same = (option: string) => canonical(option) === canonical(json);
  const options = own.get("enum");
  if (options && ![...members(options).values()].some(same)) found.push("is not one of the allowed values");
  if (own.has("const") && !same(own.get("const")!)) found.push(`is not ${inline(own.get("const")!)}`);
  for (const [keyword, before, after] of bounds) {
    if (own.has(keyword) && !admits(keyword, keywords[keyword], value)) found.push(`is not ${before}${String(keywords[keyword])}${after}`.replace("is not matches", "does not match"));
  }
  return [...found.map((fault) => place + fault), ...faultsOfParts(resolved, own, json, value, place)];
}

function faultsOfParts(schema: Schema, own: Map<string, string>, json: string, value: unknown, place: string): string[] {
  if (typeof value !== "object" || value === null) return [];
  const found: string[] = [];
  const parts = members(json);
  const items = own.get("items");
  const schemas = members(own.get("properties") ?? "{}");
  for (const [name, part] of parts) {
    const of = Array.isArray(value) ? (items?.startsWith("[") ? undefined : items) : schemas.get(name);
    if (of) found.push(...faults({ ...schema, json: of }, part, `${place}${name}: `));
    else if (!Array.isArray(value) && own.get("additionalProperties") === "false" && !own.has("patternProperties")) found.push(`${place}${name}: no such member`);
  }
  if (!Array.isArray(value)) {
    for (const name of members(own.get("required") ?? "[]").values()) {
      const wanted = JSON.parse(name) as string;
      if (!parts.has(wanted)) found.push(`${place}${wanted} is missing`);
    }
  }
  return found;
}

function isOf(type: string, value: unknown): boolean {
  switch (type) {
    case "integer":
      return Number.isInteger(value);
    case "array":
      return Array.isArray(value);
    case "null":
      return value === null;
    case "object":
      return typeof value === "object" && value !== null && !Array.isArray(value);
    default:
      return typeof value === type;
  }
}

function admits(keyword: string, bound: unknown, value: unknown): boolean {
  const limit = Number(bound);
  if (typeof value === "number") {
    if (keyword === "minimum") return value >= limit;
    if (keyword === "exclusiveMinimum") return value > limit;
    if (keyword === "maximum") return value <= limit;
    if (keyword === "exclusiveMaximum") return value < limit;
  } else if (typeof value === "string") {
    if (keyword === "minLength") return [...value].length >= limit;
    if (keyword === "maxLength") return [...value].length <= limit;
    if (keyword === "pattern") return matches(String(bound), value);
  } else if (Array.isArray(value)) {
    if (keyword === "minItems") return value.length >= limit;
    if (keyword === "maxItems") return value.length <= limit;
  }
  return true;
}

// The services use RE2, whose patterns are not always those of browsers. A pattern with a repeated group could take a
// browser very long.
function matches(pattern: string, value: string): boolean {
  if (/[+*}]\)|\)[+*{]/.test(pattern)) return true;
  try {
    return new RegExp(pattern, "u").test(value);
  } catch {
    return true;
  }
}

// Values are compared as double-precision numbers, and objects without the order of their members.
function canonical(json: string): string {
  const sorted = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(sorted);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, each]) => [name, sorted(each)]));
  };
  return JSON.stringify(sorted(JSON.parse(json)));
}
