import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { compose, ofFiles, ofSecret, ofTargets, ofWorkspace, shellWord, type Wanted } from "./deploy_command";
import { describe, type Described } from "./template";

const parameters = {
  name: { schema: { type: "string" }, required: true },
  count: { schema: { type: "integer", minimum: 0 }, value: 0 },
  mode: { schema: { enum: ["a b", 1] } },
  tags: { schema: { type: "array" } },
  token: { schema: { type: "string" }, sensitive: true },
  pin: { schema: { type: "integer" }, sensitive: true },
  region: { value: "eu", delegation: "fixed" },
};

const type = (more = {}): Described => describe("type", { name: "greet", version: "1.0.0", document: JSON.stringify({ parameters }), ...more }, null);

function made(values: Record<string, string>, more: Partial<Wanted> = {}, subject = type()): ReturnType<typeof compose> {
  return compose(subject, { values: new Map(Object.entries({ name: "Ada", ...values })), secrets: new Map(), target: "node", targets: "n1", action: "deploy", files: "", workspace: "", wait: false, ...more });
}

test("the command sets what was entered", () => {
  assert.equal(made({}).command, "muster deploy --type greet@1.0.0 --node n1 --set-text name=Ada");
  assert.equal(made({ count: " 10 ", mode: '"a b"', pin: "7" }).command, "muster deploy --type greet@1.0.0 --node n1 --set count=10 --set-text 'mode=a b' --set-text name=Ada --set pin=7");
  assert.match(made({ token: "my token" }).command, / --set-file 'token=my token'$/);
  assert.match(made({}, { targets: "n1, n2  n3", action: "check", wait: true }).command, / --action check --node n1,n2,n3 .*--wait$/);
  assert.match(made({}, { target: "label", targets: "rack=b1 x=" }).command, / --label rack=b1 --label x= /);
  assert.match(made({}, { target: "all", targets: "" }).command, / --all /);
});

test("a template and an ad-hoc type name their files", () => {
  const template = describe("template", { name: "hi", version: "1.4.0", document: "{}" }, { adHoc: true, document: "{}" });
  assert.equal(made({}, { files: "my files/" }, template).command, "muster deploy hi@1.4.0 --files 'my files/' --node n1");
  assert.equal(made({}, { files: "-x" }, type({ adHoc: true })).command, "muster deploy ./-x --type greet@1.0.0 --node n1 --set-text name=Ada");
  assert.ok(made({}, {}, template).problems.has(ofFiles));
});

test("secrets are named, and the required ones must be", () => {
  const subject = type({ document: JSON.stringify({ secrets: { db: { required: true }, api: {} } }) });
  const with_ = (secrets: Record<string, string>) => compose(subject, { values: new Map(), secrets: new Map(Object.entries(secrets)), target: "all", targets: "", action: "deploy", files: "", workspace: "", wait: true });
  assert.deepEqual(with_({}), { command: "", problems: new Map([[ofSecret("db"), "the name of a secret is required"]]) });
  assert.equal(with_({ db: " prod/db@3 " }).command, "muster deploy --type greet@1.0.0 --all --secret db=prod/db@3 --wait");
  assert.equal(with_({ db: "a", api: "vault:prod/api#key" }).command, "muster deploy --type greet@1.0.0 --all --secret 'api=vault:prod/api#key' --secret db=a --wait");
  for (const wrong of ["a b", "../x", "a@0", "a@x", "vault:a", "vault:a#.b", "a\nb", "a//b", "/a", "a'b"]) {
    assert.ok(with_({ db: wrong }).problems.has(ofSecret("db")), wrong);
  }
});

test("a workspace is for one node", () => {
  assert.match(made({}, { workspace: " net_1.a " }).command, / --workspace net_1\.a$/);
  assert.match(made({}, { workspace: "net", target: "label", targets: "rack=b1" }).command, / --label rack=b1 .*--workspace net$/);
  const problem = (more: Partial<Wanted>) => made({}, more).problems.get(ofWorkspace) ?? "";
  for (const more of [{ target: "all" }, { targets: "n1,n2" }] as const) assert.match(problem({ workspace: "net", ...more }), /runs on one node/);
  for (const workspace of ["a/b", "-x", ".a", "a b", "x".repeat(254)]) assert.match(problem({ workspace }), /is not the name of a workspace/);
  assert.equal(problem({ targets: "n1,n2" }), "");
});

test("mistakes are named, and there is no command", () => {
  const cases: [Record<string, string>, Partial<Wanted>, string, string][] = [
    [{ count: "x" }, {}, "count", "is not a number"],
    [{ count: "-1" }, {}, "count", "is not at least 0"],
    [{ tags: "[" }, {}, "tags", "is not JSON"],
    [{ tags: "{}" }, {}, "tags", "is not list"],
    [{}, { targets: " " }, ofTargets, "a node is required"],
    [{}, { targets: "-x" }, ofTargets, "-x is not the name of a node"],
    [{}, { target: "label", targets: "rack" }, ofTargets, "rack is not KEY=VALUE"],
    [{ token: "a\nb" }, {}, "token", "no control characters"],
    [{ name: "x".repeat(40_000) }, {}, "name", "32 KiB"],
  ];
  for (const [values, more, name, want] of cases) {
    const { command, problems } = made(values, more);
    assert.equal(command, "");
    assert.ok(problems.get(name)?.includes(want), `${problems.get(name)}`);
  }
  const { command, problems } = compose(type(), { values: new Map(), secrets: new Map(), target: "all", targets: "", action: "deploy", files: "", workspace: "", wait: false });
  assert.deepEqual([command, problems.get("name")], ["", "a value is required"]);
});

test("a shell reads each word as it was entered", () => {
  for (const word of ["plain", "it's", "$HOME `id` \\ !x", "*", "a\tb", "", "é\u{1f600}", "--x='"]) {
    assert.equal(execFileSync("sh", ["-c", `printf %s ${shellWord(word)}`], { encoding: "utf8" }), word);
  }
});

test("no command contains a control character", () => {
  const bad = "a\n\u001b[31m\u009b\u202e\u2028b";
  const { command } = made({ name: bad, tags: `["\u007f",\n"c"]` });
  assert.doesNotMatch(command, /[\u0000-\u001f\u007f-\u009f\u2028-\u202e]/);
  const set = /--set '(?:name)=(.*?)' --set/.exec(command)![1]!;
  assert.equal(JSON.parse(set), bad);
});
