// Computes the position of each cell of the grid. Nodes are columns, plugins are rows. When the columns reach
// the right edge, the matrix continues in another band: 100,000 cells need no horizontal scrolling. In a narrow view,
// which has no space for names beside the rows, each plugin has its own bands under its name.
import { globalNode } from "../model/matrix";

export const cellSizes: readonly number[] = [2, 3, 4, 6, 8, 10, 14, 18, 24];

const narrow = 520; // pixels; a smaller view is narrow
const below = 8; // pixels under a band
const between = 4; // below a band whose caption also covers the next one

export interface Shape {
  nodes: readonly string[];
  plugins: readonly string[];
  /** Plugins that run once. They have one cell each, for the node "global", in a separate band. */
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
  /** The caption of this band and of the following bands without one. */
  caption: { last: number } | null;
  first: number; // position of its first node
  count: number;
  rows: readonly number[];
  /** True for plugins that run once: the only column is the node "global". */
  once: boolean;
}

export class Layout {
  readonly bands: Band[] = [];
  readonly height: number;
  readonly gutter: number;
  /** The names of the plugins are beside the rows. */
  readonly named: boolean;
  /** Each band has one plugin, whose name is in the caption. */
  readonly apart: boolean;
  readonly perBand: number;
  /** Distance from one cell to the next. */
  readonly pitch: number;
  readonly caption: number;

  // The index of the node "global", which is not in the bands of the other nodes; -1 if it is not in the run.
  private readonly global: number;

  constructor(
    shape: Shape,
    readonly width: number,
    readonly cell: number,
  ) {
    this.pitch = cell + (cell > 4 ? 2 : cell > 2 ? 1 : 0);
    this.named = cell >= 8 && width >= narrow;
    this.apart = width < narrow;
    this.gutter = this.named ? Math.min(150, 16 + 7 * Math.max(0, ...shape.plugins.map((p) => p.length))) : 0;
    this.caption = 18;
    this.perBand = Math.max(1, Math.floor((width - this.gutter) / this.pitch));

    this.global = shape.once.size > 0 ? shape.nodes.indexOf(globalNode) : -1;
    const onceRows: number[] = [];
    const nodeRows: number[] = [];
    shape.plugins.forEach((name, index) => (shape.once.has(name) ? onceRows : nodeRows).push(index));

    let y = 0;
    const add = (rows: readonly number[], columns: number, once: boolean, together: number) => {
      for (let first = 0, index = 0; first < columns; first += this.perBand, index++) {
        const captioned = index % together === 0;
        if (captioned) y += this.caption;
        const last = Math.min(columns, first + together * this.perBand) - 1;
        const count = Math.min(this.perBand, columns - first);
        this.bands.push({ y, caption: captioned ? { last } : null, first, count, rows, once });
        const closed = (index + 1) % together === 0;
        y += rows.length * this.pitch + (closed ? below : rows.length > 1 ? between : 0);
      }
    };
    const others = shape.nodes.length - (this.global >= 0 ? 1 : 0);
    if (this.apart) {
      if (this.global >= 0) for (const row of onceRows) add([row], 1, true, 1);
      for (const row of nodeRows) add([row], others, false, Math.max(1, Math.ceil(others / this.perBand)));
      this.height = y;
      return;
    }
    if (onceRows.length > 0 && this.global >= 0) add(onceRows, 1, true, 1);
    // With few plugins, several bands share a caption: otherwise there would be more captions than cells.
    const height = nodeRows.length * this.pitch;
    if (height > 0) add(nodeRows, others, false, height >= 30 ? 1 : Math.ceil(60 / height));
    this.height = y;
  }

  /** Returns the node at a position of a band. */
  columnAt(band: Band, position: number): number {
    if (band.once) return this.global;
    return this.global >= 0 && position >= this.global ? position + 1 : position;
  }

  private positionOf(band: Band, column: number): number {
    if (band.once) return 0;
    return this.global >= 0 && column > this.global ? column - 1 : column;
  }

  /** Returns the bands that overlap a view of this height from `top`. */
  visible(top: number, height: number): Band[] {
    return this.bands.filter((band) => band.y - this.caption < top + height && band.y + band.rows.length * this.pitch > top);
  }

  /** Returns the upper left corner of a cell, or null if the grid does not have it. */
  boxOf(cell: Cell): Box | null {
    const band = this.bands.find((b) => b.rows.includes(cell.row) && this.within(b, cell.column));
    if (!band) return null;
    const position = this.positionOf(band, cell.column) - band.first;
    return { x: this.gutter + position * this.pitch, y: band.y + band.rows.indexOf(cell.row) * this.pitch };
  }

  private within(band: Band, column: number): boolean {
    if (band.once || column === this.global) return band.once && column === this.global;
    const position = this.positionOf(band, column);
    return position >= band.first && position < band.first + band.count;
  }

  /** Returns the cell at a point, in the coordinates of the whole grid. */
  cellAt(x: number, y: number): Cell | null {
    const position = Math.floor((x - this.gutter) / this.pitch);
    for (const band of this.bands) {
      const line = Math.floor((y - band.y) / this.pitch);
      if (line < 0 || line >= band.rows.length) continue;
      if (position < 0 || position >= band.count) return null;
      return { row: band.rows[line]!, column: this.columnAt(band, band.first + position) };
    }
    return null;
  }

  /** Returns the cell that a key moves to. Up from the first row of a band is the last row of the previous band. */
  move(from: Cell | null, key: string): Cell | null {
    const order = this.bands.flatMap((band, index) => band.rows.map((row, line) => ({ band, index, row, line })));
    if (order.length === 0) return null;
    const home = { row: order[0]!.row, column: this.columnAt(order[0]!.band, order[0]!.band.first) };
    if (!from) return home;
    let at = order.findIndex((line) => line.row === from.row && this.within(line.band, from.column));
    if (at < 0) return home;
    const { band } = order[at]!;
    let position = this.positionOf(band, from.column) - band.first;
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
    return { row: target.row, column: this.columnAt(target.band, target.band.first + Math.min(last, position)) };
  }

  // Beyond the edge of a band: the same plugin in the previous or next band.
  private aside(order: { band: Band; index: number; row: number }[], at: number, position: number): Cell {
    const { band, index, row } = order[at]!;
    const next = this.bands[index + (position < 0 ? -1 : 1)];
    if (!next || !next.rows.includes(row)) {
      return { row, column: this.columnAt(band, band.first + Math.min(band.count - 1, Math.max(0, position))) };
    }
    return { row, column: this.columnAt(next, next.first + (position < 0 ? next.count - 1 : 0)) };
  }
}
