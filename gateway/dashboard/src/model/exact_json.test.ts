import assert from "node:assert/strict";
import { test } from "node:test";
import { inline, member, members } from "./exact_json";

test("members have the text of their author", () => {
  const json = ' {"a": 0.10, "b,:{" : "x\\"]," ,"c":[1.0,{"d":[]}], "e":9007199254740993 , "f":{}, "":null } ';
  assert.deepEqual([...members(json)], [["a", "0.10"], ["b,:{", '"x\\"],"'], ["c", '[1.0,{"d":[]}]'], ["e", "9007199254740993"], ["f", "{}"], ["", "null"]]);
  assert.equal(member(json, "none"), null);
  assert.equal(member(null, "a"), null);
});

test("elements of a list are numbered", () => {
  assert.deepEqual([...members('[1.50, "a,b",[2,3],{"x":1}]')], [["0", "1.50"], ["1", '"a,b"'], ["2", "[2,3]"], ["3", '{"x":1}']]);
  assert.equal(members("[]").size, 0);
  assert.equal(members("true").size, 0);
});

test("what is no JSON is an error", () => {
  assert.throws(() => members('{"a": }'), SyntaxError);
});

test("a value is written on one line", () => {
  assert.equal(inline('{"a":[1.50,\n2],"b":"x"}'), '{"a": [1.50, 2], "b": "x"}');
  assert.equal(inline("0.10"), "0.10");
});
