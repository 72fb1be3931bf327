// Where each cell of the grid lies. Nodes are columns, plugins rows; when the columns reach the right edge
// the matrix goes on below, in another band: so 100,000 cells need no scrolling to the side.
import { globalNode } from "../model/matrix";

export const cellSizes: readonly number[] = [2, 3, 4, 6, 8, 10, 14, 18, 24];

const below = 8; // pixels under a band
const between = 4; // under one whose caption holds for the next, too

export interface Shape {
  nodes: readonly string[];
  plugins: readonly string[];
  /** Plugins that run once. They have one cell each, for the node "global", and a band of their own. */
  once: ReadonlySet<string>;
}

export interface Cell {
  row: number; // index of the plugin
  column: number; // index of the node
}

export interface Box {
  x: number;
  y: number;
}

interface Band {
  y: number; // of its cells
  /** The caption above it, for it and those that follow without one. */
  caption: { last: number } | null;
  first: number; // position in `columns`
  count: number;
  rows: readonly number[];
  columns: readonly number[];
}

export class Layout {
  readonly bands: Band[] = [];
  readonly height: number;
  readonly gutter: number;
  readonly named: boolean;
  readonly perBand: number;
  /** Distance from one cell to the next. */
  readonly pitch: number;
  readonly caption: number;

  private readonly everyNode: number[] = [];
  private readonly perNode: number[] = [];
  private readonly positions = new Map<number, number>(); // node to position in everyNode

  constructor(
    shape: Shape,
    readonly width: number,
    readonly cell: number,
  ) {
    this.pitch = cell + (cell > 4 ? 2 : cell > 2 ? 1 : 0);
    this.named = cell >= 8 && width >= 520;
    this.gutter = this.named ? Math.min(150, 16 + 7 * Math.max(0, ...shape.plugins.map((p) => p.length))) : 0;
    this.caption = 18;
    this.perBand = Math.max(1, Math.floor((width - this.gutter) / this.pitch));

    shape.nodes.forEach((name, index) => {
      if (name === globalNode && shape.once.size > 0) return;
      this.positions.set(index, this.everyNode.length);
      this.everyNode.push(index);
    });
    const onceRows: number[] = [];
    shape.plugins.forEach((name, index) => (shape.once.has(name) ? onceRows : this.perNode).push(index));

    let y = 0;
    const add = (rows: readonly number[], columns: readonly number[], together: number) => {
      for (let first = 0, index = 0; first < columns.length; first += this.perBand, index++) {
        const captioned = index % together === 0;
        if (captioned) y += this.caption;
        const last = Math.min(columns.length, first + together * this.perBand) - 1;
        const count = Math.min(this.perBand, columns.length - first);
        this.bands.push({ y, caption: captioned ? { last } : null, first, count, rows, columns });
        const closed = (index + 1) % together === 0;
        y += rows.length * this.pitch + (closed ? below : rows.length > 1 ? between : 0);
      }
    };
    const once = shape.nodes.indexOf(globalNode);
    if (onceRows.length > 0 && once >= 0) add(onceRows, [once], 1);
    // Of few plugins, several bands share a caption: else there would be more captions than cells.
    const height = this.perNode.length * this.pitch;
    if (height > 0) add(this.perNode, this.everyNode, height >= 30 ? 1 : Math.ceil(60 / height));
    this.height = y;
  }

  /** The bands that a view from `top` of this height touches. */
  visible(top: number, height: number): Band[] {
    return this.bands.filter((band) => band.y - this.caption < top + height && band.y + band.rows.length * this.pitch > top);
  }

  /** The upper left corner of a cell; null: there is none. */
  boxOf(cell: Cell): Box | null {
    const band = this.bands.find((b) => b.rows.includes(cell.row) && this.within(b, cell.column));
    if (!band) return null;
    const position = band.columns === this.everyNode ? this.positions.get(cell.column)! - band.first : 0;
    return { x: this.gutter + position * this.pitch, y: band.y + band.rows.indexOf(cell.row) * this.pitch };
  }

  private within(band: Band, column: number): boolean {
    if (band.columns !== this.everyNode) return band.columns[0] === column;
    const position = this.positions.get(column);
    return position !== undefined && position >= band.first && position < band.first + band.count;
  }

  /** The cell at a point, in the coordinates of the whole grid. */
  cellAt(x: number, y: number): Cell | null {
    const position = Math.floor((x - this.gutter) / this.pitch);
    for (const band of this.bands) {
      const line = Math.floor((y - band.y) / this.pitch);
      if (line < 0 || line >= band.rows.length) continue;
      if (position < 0 || position >= band.count) return null;
      return { row: band.rows[line]!, column: band.columns[band.first + position]! };
    }
    return null;
  }

  /** Where the keyboard goes from a cell. Up from the first row of a band is the last row of the band above. */
  move(from: Cell | null, key: string): Cell | null {
    const order = this.bands.flatMap((band, index) => band.rows.map((row, line) => ({ band, index, row, line })));
    if (order.length === 0) return null;
    const home = { row: order[0]!.row, column: order[0]!.band.columns[order[0]!.band.first]! };
    if (!from) return home;
    let at = order.findIndex((line) => line.row === from.row && this.within(line.band, from.column));
    if (at < 0) return home;
    const { band } = order[at]!;
    let position = band.columns === this.everyNode ? this.positions.get(from.column)! - band.first : 0;
    switch (key) {
      case "ArrowLeft":
        position--;
        break;
      case "ArrowRight":
        position++;
        break;
      case "ArrowUp":
        at--;
        break;
      case "ArrowDown":
        at++;
        break;
      case "Home":
        position = 0;
        break;
      case "End":
        position = band.count - 1;
        break;
      case "PageUp":
        at -= band.rows.length * 3;
        break;
      case "PageDown":
        at += band.rows.length * 3;
        break;
    }
    if (position < 0 || position >= band.count) return this.aside(order, at, position);
    const target = order[Math.min(order.length - 1, Math.max(0, at))]!;
    const last = target.band.count - 1;
    return { row: target.row, column: target.band.columns[target.band.first + Math.min(last, position)]! };
  }

  // Over the edge of a band: the same plugin in the band before or after.
  private aside(order: { band: Band; index: number; row: number }[], at: number, position: number): Cell {
    const { band, index, row } = order[at]!;
    const next = this.bands[index + (position < 0 ? -1 : 1)];
    if (!next || !next.rows.includes(row)) {
      return { row, column: band.columns[band.first + Math.min(band.count - 1, Math.max(0, position))]! };
    }
    return { row, column: next.columns[next.first + (position < 0 ? next.count - 1 : 0)]! };
  }
}
