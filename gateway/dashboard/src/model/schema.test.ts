import assert from "node:assert/strict";
import { test } from "node:test";
import { describe, faults, inputOf, isDescribed, type Schema } from "./schema";

const schema = (json: unknown, definitions: unknown = {}): Schema => ({ json: JSON.stringify(json), definitions: JSON.stringify(definitions) });

test("each type has its input", () => {
  const kinds = [{ type: "string" }, { type: "integer" }, { type: "number" }, { type: "boolean" }, { type: "array" }, { type: "object" }, {}, true, { type: ["string", "null"] }];
  assert.deepEqual(kinds.map((each) => inputOf(schema(each)).kind), ["text", "integer", "number", "boolean", "json", "json", "json", "json", "json"]);
  assert.deepEqual(inputOf({ json: '{"type":"number","enum":[1.50,2]}', definitions: "{}" }), { kind: "choice", options: ["1.50", "2"] });
  assert.deepEqual(inputOf(schema({ const: "a" })), { kind: "choice", options: ['"a"'] });
});

test("references to definitions are followed, and a loop of references ends", () => {
  const definitions = { port: { $ref: "#/definitions/number" }, number: { type: "integer", minimum: 1 }, loop: { $ref: "#/definitions/loop" }, list: { type: "array", items: { $ref: "#/definitions/list" } } };
  assert.equal(describe(schema({ $ref: "#/definitions/port" }, definitions)), "integer, at least 1");
  assert.equal(faults(schema({ $ref: "#/definitions/port" }, definitions), "0")[0], "is not at least 1");
  assert.equal(inputOf(schema({ $ref: "#/definitions/loop" }, definitions)).kind, "json");
  assert.equal(describe(schema({ $ref: "#/definitions/list" }, definitions)), "list of list of list of list");
  assert.equal(isDescribed(schema({ $ref: "#/definitions/list" }, definitions)), false);
});

test("a schema is described in words", () => {
  assert.equal(describe(schema({ type: "string", minLength: 1, maxLength: 20, pattern: "^a" })), "text, at least 1 character, at most 20 characters, matches ^a");
  assert.equal(describe(schema({ enum: ["Ada", 1] })), 'one of "Ada", 1');
  assert.equal(describe(schema({ type: "array", items: { type: "string" }, maxItems: 3 })), "list of text, at most 3 elements");
  assert.equal(describe(schema({ type: "array", items: { type: "integer", minimum: 1 } })), "list of (integer, at least 1)");
  assert.equal(describe(schema(true)), "any value");
  assert.equal(isDescribed(schema({ type: "array", items: { type: "string" }, maxItems: 3 })), true);
  assert.equal(isDescribed(schema({ type: "array", items: { properties: { a: {} } } })), false);
});

test("mistakes name their place", () => {
  const cases: [unknown, string, string[]][] = [
    [{ type: "integer" }, "1.5", ["is not integer"]],
    [{ type: "string", maxLength: 2 }, '"\u{1f600}\u{1f600}"', []],
    [{ type: "string", pattern: "^[a-z]+$" }, '"B"', ["does not match ^[a-z]+$"]],
    [{ enum: [{ a: 1, b: 2 }] }, '{"b":2,"a":1}', []],
    [{ enum: ["a"] }, '"b"', ["is not one of the allowed values"]],
    [{ const: 1 }, "2", ["is not 1"]],
    [{ exclusiveMaximum: 5, minimum: 1 }, "5", ["is not less than 5"]],
    [{ type: "array", items: { type: "string" } }, '["a",1]', ["1: is not text"]],
    [{ type: "object", properties: { a: { type: "boolean" } }, required: ["b"], additionalProperties: false }, '{"a":1,"c":2}', ["a: is not true or false", "c: no such member", "b is missing"]],
    [false, "1", ["no value is allowed"]],
  ];
  for (const [json, value, want] of cases) assert.deepEqual(faults(schema(json), value), want, JSON.stringify(json));
});

test("a pattern that could take very long is left to the services", () => {
  assert.deepEqual(faults(schema({ pattern: "^(a+)+$" }), JSON.stringify("a".repeat(60) + "!")), []);
  assert.deepEqual(faults(schema({ pattern: "(?P<x>a)" }), '"b"'), []);
});
