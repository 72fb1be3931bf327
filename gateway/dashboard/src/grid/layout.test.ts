import assert from "node:assert/strict";
import { test } from "node:test";
import { Layout, type Cell } from "./layout";

const names = (count: number, prefix: string) => Array.from({ length: count }, (_, n) => `${prefix}${n}`);

function layout(nodes: number, plugins: number, once: string[] = [], width = 600, cell = 8): Layout {
  return new Layout({ nodes: [...names(nodes, "n"), ...(once.length ? ["global"] : [])], plugins: [...names(plugins, "p"), ...once], once: new Set(once) }, width, cell);
}

for (const width of [300, 600]) test(`cells do not overlap, and cellAt inverts boxOf, ${width} pixels wide`, () => {
  const l = layout(100, 3, ["once"], width);
  const taken = new Set<string>();
  const check = (cell: Cell) => {
    const box = l.boxOf(cell)!;
    assert.ok(box.x >= 0 && box.x + l.cell <= l.width && box.y + l.cell <= l.height, JSON.stringify([cell, box]));
    assert.deepEqual(l.cellAt(box.x + 1, box.y + 1), cell);
    taken.add(`${box.x}/${box.y}`);
  };
  for (let row = 0; row < 3; row++) for (let column = 0; column < 100; column++) check({ row, column });
  check({ row: 3, column: 100 }); // the plugin that runs once, on "global"
  assert.equal(taken.size, 301);
  assert.equal(l.boxOf({ row: 3, column: 5 }), null);
  assert.equal(l.boxOf({ row: 0, column: 100 }), null);
});

test("a point outside the cells has no cell", () => {
  const l = layout(7, 2);
  assert.equal(l.cellAt(-1, 30), null);
  assert.equal(l.cellAt(599, 30), null);
  assert.equal(l.cellAt(5, 2), null); // the caption
  assert.equal(l.cellAt(5, 100_000), null);
});

test("only visible bands are returned", () => {
  const l = layout(100_000, 1, [], 1000, 4);
  assert.ok(l.bands.length > 400);
  assert.ok(l.visible(5000, 460).length < 100);
  assert.ok(l.height < 10_000); // captions do not outnumber cells
});

test("arrow right reaches every cell of a row and continues in the next band", () => {
  const l = layout(70, 2);
  let at = l.move(null, "Home");
  assert.deepEqual(at, { row: 0, column: 0 });
  for (let n = 1; n < 70; n++) {
    at = l.move(at, "ArrowRight");
    assert.deepEqual(at, { row: 0, column: n });
  }
  assert.deepEqual(l.move(at, "ArrowRight"), { row: 0, column: 69 }); // the last one stays
  assert.deepEqual(l.move({ row: 0, column: 0 }, "ArrowLeft"), { row: 0, column: 0 });
});

test("arrow down crosses the plugins into the next band, arrow up returns", () => {
  const l = layout(70, 2);
  const below = l.move({ row: 1, column: 3 }, "ArrowDown")!;
  assert.deepEqual(below, { row: 0, column: 3 + l.perBand });
  assert.deepEqual(l.move(below, "ArrowUp"), { row: 1, column: 3 });
  assert.deepEqual(l.move({ row: 0, column: 3 }, "ArrowUp"), { row: 0, column: 3 });
  assert.deepEqual(l.move({ row: 0, column: 3 }, "End"), { row: 0, column: l.perBand - 1 });
});

test("in a narrow view each plugin has its own bands, with one caption", () => {
  const l = layout(100, 3, ["once"], 300);
  assert.deepEqual(l.bands.filter((band) => band.caption).map((band) => band.rows), [[3], [0], [1], [2]]);
  assert.ok(l.bands.every((band) => band.rows.length === 1));
  assert.deepEqual(l.move({ row: 0, column: l.perBand - 1 }, "ArrowRight"), { row: 0, column: l.perBand });
  assert.deepEqual(l.move({ row: 0, column: 99 }, "ArrowDown"), { row: 1, column: 99 % l.perBand });
});
