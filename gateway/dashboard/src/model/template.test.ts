import assert from "node:assert/strict";
import { test } from "node:test";
import { byName, describe, isAccepted, newestOf, version } from "./template";

const greet = {
  name: "greet", version: "1.0.0", image: "r/greet@sha256:0", createdBy: "spiffe://f/user/ada",
  document: '{"actions":["deploy","check"],"limits":{"cpus":0.50,"time":"5m"},"outputs":{"text":{"required":true,"schema":{"type":"string"}}},"parameters":{' +
    '"fixed":{"delegation":"fixed","value":1},"mode":{"delegation":"default","schema":{"type":"string"},"value":"long text"},' +
    '"name":{"description":"who","required":true,"schema":{"type":"string"}},"open":{},"size":{"schema":{"type":"number"},"value":0.10},"token":{"sensitive":true}}}',
};

const template = (parameters: unknown) => describe("template", { name: "hi", version: "1.4.0", type: "greet@1.0.0", document: JSON.stringify({ limits: { time: "1m" }, parameters, outputs: { more: {} } }) }, greet);

test("a type says who sets each value", () => {
  const type = describe("type", greet, null);
  const shown = type.parameters.map((p) => `${p.name} ${p.delegation} ${p.value} ${p.source}${p.required ? " required" : ""}${p.sensitive ? " sensitive" : ""}`);
  assert.deepEqual(shown, [
    "fixed fixed 1 type", 'mode default "long text" type default', "name delegated null  required", "open delegated null ", "size default 0.10 type default", "token delegated null  sensitive",
  ]);
  assert.deepEqual(type.actions, ["deploy", "check"]);
  assert.equal(type.network, "none");
  assert.deepEqual(type.limits, [{ name: "cpus", value: "0.50", of: "type" }, { name: "time", value: "5m", of: "type" }]);
});

test("a document without its image or type was rejected by the services", () => {
  const hi = { name: "hi", version: "1.0.0", type: "greet@1.0.0" };
  assert.ok(isAccepted("type", greet, null));
  assert.ok(!isAccepted("type", { ...greet, image: "" }, null));
  assert.ok(isAccepted("template", hi, greet));
  assert.ok(!isAccepted("template", hi, { ...greet, image: "" }));
  assert.ok(!isAccepted("template", { ...hi, type: "" }, null));
});

test("a template adds secrets and requires those of its type", () => {
  const type = { document: JSON.stringify({ secrets: { db: { description: "the database" }, api: { required: true } } }) };
  const own = { name: "hi", version: "1.0.0", document: JSON.stringify({ secrets: { db: { required: true }, own: {} } }) };
  assert.deepEqual(describe("type", type, null).secrets.map(({ name, required }) => `${name} ${required}`), ["api true", "db false"]);
  assert.deepEqual(describe("template", own, type).secrets, [
    { name: "api", description: "", required: true },
    { name: "db", description: "the database", required: true },
    { name: "own", description: "", required: false },
  ]);
});

test("a template fixes, sets, requires and adds", () => {
  const { parameters, limits, outputs } = template({ name: { delegation: "fixed", value: "Ada" }, size: { value: 2 }, open: { required: true, sensitive: true }, own: { value: [] }, token: {} });
  const by = new Map(parameters.map((p) => [p.name, p]));
  const of = (name: string) => `${by.get(name)!.delegation} ${by.get(name)!.value} ${by.get(name)!.source}`;
  assert.equal(of("name"), 'fixed "Ada" template');
  assert.equal(by.get("name")!.required, false);
  assert.equal(by.get("name")!.description, "who");
  assert.equal(of("size"), "default 2 template default");
  assert.equal(of("fixed"), "fixed 1 type");
  assert.equal(of("own"), "default [] template default");
  assert.ok(by.get("open")!.required && by.get("open")!.sensitive);
  assert.ok(by.get("token")!.sensitive);
  assert.deepEqual(limits.map((l) => `${l.name} ${l.value} ${l.of}`), ["cpus 0.50 type", "time 1m template"]);
  assert.deepEqual(outputs.map((o) => `${o.name} ${o.of}`), ["text type", "more template"]);
});

test("a built template runs its own image, and names the base and the source", () => {
  const own = { name: "web", version: "1.0.0", type: "greet@1.0.0", document: "{}" };
  const built = describe("template", { ...own, image: "r/web@sha256:1", source: { kind: "git", sha256: "ab", url: "https://h/web", commit: "c0", folder: "" } }, greet);
  assert.equal(built.image, "r/web@sha256:1");
  assert.deepEqual(built.built, { base: greet.image, source: { kind: "git", sha256: "ab", url: "https://h/web", commit: "c0", folder: "" } });
  const other = describe("template", own, greet);
  assert.deepEqual([other.image, other.built], [greet.image, null]);
  assert.equal(describe("type", greet, null).built, null);
});

test("a default of the type remains if the template's schema admits it", () => {
  const mode = (schema: unknown) => template({ mode: { schema } }).parameters.find((p) => p.name === "mode")!;
  assert.equal(mode({ type: "string", maxLength: 20 }).value, '"long text"');
  assert.equal(mode({ type: "string", maxLength: 20 }).source, "type default");
  const narrow = mode({ type: "string", maxLength: 4 });
  assert.deepEqual([narrow.value, narrow.delegation, narrow.schemas.length], [null, "delegated", 2]);
});

test("versions are grouped by name", () => {
  const versions = ["a@2", "a@1", "b@1"].map((reference) => version("type", { name: reference[0], version: reference.slice(2) }));
  assert.deepEqual(byName(versions).map(({ name, versions: each }) => `${name}: ${each.map((v) => v.version)}`), ["a: 2,1", "b: 1"]);
});

test("a name stands for its newest release", () => {
  const versions = (...names: string[]) => names.map((name) => version("type", { name: "greet", version: name }));
  assert.equal(newestOf(versions("2.0.0-rc.1", "1.2.0", "1.1.0")).version, "1.2.0");
  assert.equal(newestOf(versions("2.0.0-rc.2", "2.0.0-rc.1")).version, "2.0.0-rc.2");
});
