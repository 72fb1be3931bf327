// Plugins x nodes as byte arrays, from which the canvas draws without access to the pairs.
import { indexOf, kinds } from "./kinds";
import type { Pair } from "./parse";

/** The matrix value of a pair that is not planned. */
export const noPair = 255;

/** The node of plugins that run once. */
export const globalNode = "global";

export class Matrix {
  plugins: string[] = [];
  nodes: string[] = [];
  /** The number of pairs of each kind. */
  tally: number[] = kinds.map(() => 0);

  private rows = new Map<string, number>();
  private columns = new Map<string, number>();
  private kind: Uint8Array[] = []; // one for each plugin, by node
  private fill: Uint8Array[] = [];

  /** Replaces all pairs. */
  rebuild(pairs: Iterable<Pair>): void {
    const all = [...pairs];
    this.plugins = sorted(new Set(all.map((p) => p.plugin)));
    this.nodes = sorted(new Set(all.map((p) => p.node)));
    this.rows = new Map(this.plugins.map((name, index) => [name, index]));
    this.columns = new Map(this.nodes.map((name, index) => [name, index]));
    this.kind = this.plugins.map(() => new Uint8Array(this.nodes.length).fill(noPair));
    this.fill = this.plugins.map(() => new Uint8Array(this.nodes.length));
    this.tally = kinds.map(() => 0);
    for (const pair of all) this.set(pair);
  }

  /** Sets one pair. A new plugin or node extends the matrix. */
  set(pair: Pair): void {
    let row = this.rows.get(pair.plugin);
    let column = this.columns.get(pair.node);
    if (row === undefined) row = this.addPlugin(pair.plugin);
    if (column === undefined) column = this.addNode(pair.node);
    const kind = indexOf(pair.kind);
    const before = this.kind[row]![column]!;
    if (before !== noPair) this.tally[before]!--;
    this.tally[kind]!++;
    this.kind[row]![column] = kind;
    this.fill[row]![column] = fillOf(pair);
  }

  /** Returns the index into `kinds`, or `noPair`. */
  kindAt(row: number, column: number): number {
    return this.kind[row]?.[column] ?? noPair;
  }

  /** Returns the progress, 0 to 255. */
  fillAt(row: number, column: number): number {
    return this.fill[row]?.[column] ?? 0;
  }

  columnOf(node: string): number | undefined {
    return this.columns.get(node);
  }

  rowOf(plugin: string): number | undefined {
    return this.rows.get(plugin);
  }

  // Plans do not grow, so new nodes are appended, and this is rare.
  private addPlugin(name: string): number {
    this.rows.set(name, this.plugins.length);
    this.kind.push(new Uint8Array(this.nodes.length).fill(noPair));
    this.fill.push(new Uint8Array(this.nodes.length));
    return this.plugins.push(name) - 1;
  }

  private addNode(name: string): number {
    this.columns.set(name, this.nodes.length);
    this.kind = this.kind.map((cells) => Uint8Array.from([...cells, noPair]));
    this.fill = this.fill.map((cells) => Uint8Array.from([...cells, 0]));
    return this.nodes.push(name) - 1;
  }
}

function fillOf(pair: Pair): number {
  const { progress } = pair;
  if (!progress || progress.total <= 0) return 0;
  return Math.round(255 * Math.min(1, Math.max(0, progress.completed / progress.total)));
}

/** Sorts by name, with numbers by value: n2 before n10. */
export function sorted(names: Iterable<string>): string[] {
  return [...names]
    .map((name) => [name.replace(/\d+/g, (digits) => digits.padStart(12, "0")), name] as const)
    .sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : a[1] < b[1] ? -1 : 1))
    .map(([, name]) => name);
}
