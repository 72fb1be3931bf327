import assert from "node:assert/strict";
import { test } from "node:test";
import { bytes, count, duration, nameOf, percent, plural, range, skew } from "./format";

test("percent is 100 only if nothing is missing", () => {
  assert.equal(percent(99_999 / 100_000), "99.9 %");
  assert.equal(percent(1), "100 %");
  assert.equal(percent(0.5), "50 %");
  assert.equal(percent(1 / 3), "33.3 %");
  assert.equal(percent(0.29), "29 %"); // 0.29 * 1000 is 290 less a bit
  assert.equal(percent(-1), "0 %");
});

test("durations have two units", () => {
  const cases: [number, string][] = [
    [0, "0 s"], [-5, "0 s"], [59.9, "59 s"], [60, "1 min"], [61, "1 min 1 s"], [600, "10 min"], [655, "10 min"],
    [3600, "1 h"], [7500, "2 h 5 min"], [86400 * 3 + 3600 * 4, "3 d 4 h"],
  ];
  for (const [value, want] of cases) assert.equal(duration(value), want);
});

test("an estimate with equal ends is shown as one value", () => {
  const minute = 60_000;
  assert.equal(range(4 * minute, 12 * minute, 0), "in 4 min to 12 min");
  assert.equal(range(4 * minute, 4 * minute + 5000, 0), "in about 4 min");
  assert.equal(range(0, 2 * minute, minute), "within 1 min");
  assert.equal(range(0, minute, 2 * minute), "any moment");
  assert.equal(range(20_000, 50_000, 0), "in 20 s to 50 s");
});

test("counts and sizes", () => {
  assert.equal(count(100000), "100,000");
  assert.equal(plural(1, "pair"), "1 pair");
  assert.equal(plural(2, "pair"), "2 pairs");
  assert.equal(bytes(0), "0 B");
  assert.equal(bytes(1536), "1.5 KiB");
  assert.equal(bytes(3_000_000), "2.8 MiB"); // as HumanSize of the command line
  assert.equal(bytes(2048), "2 KiB");
  assert.equal(bytes(12.9 * 1024), "12 KiB");
  assert.equal(bytes(250 * 1024 * 1024), "250 MiB");
});

test("a clock skew below a second is not shown", () => {
  assert.equal(skew(0.4), "");
  assert.equal(skew(-74.2), "1 min 14 s behind");
  assert.equal(skew(3), "3 s ahead");
});

test("the name of an identity is its last part", () => {
  assert.equal(nameOf("spiffe://fleet-1.muster/user/alice"), "alice");
  assert.equal(nameOf("alice"), "alice");
});
