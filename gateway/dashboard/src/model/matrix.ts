// Plugins x nodes as arrays of bytes: what the canvas draws without touching the pairs themselves.
import { indexOf, kinds } from "./kinds";
import type { Pair } from "./parse";

/** No such pair is planned. */
export const nothing = 255;

/** The node that stands for plugins that run once. */
export const globalNode = "global";

export class Matrix {
  plugins: string[] = [];
  nodes: string[] = [];
  /** How many pairs are of each kind. */
  tally: number[] = kinds.map(() => 0);

  private rows = new Map<string, number>();
  private columns = new Map<string, number>();
  private kind: Uint8Array[] = []; // one for each plugin, by node
  private fill: Uint8Array[] = [];

  /** Everything anew. */
  rebuild(pairs: Iterable<Pair>): void {
    const all = [...pairs];
    this.plugins = sorted(new Set(all.map((p) => p.plugin)));
    this.nodes = sorted(new Set(all.map((p) => p.node)));
    this.rows = new Map(this.plugins.map((name, index) => [name, index]));
    this.columns = new Map(this.nodes.map((name, index) => [name, index]));
    this.kind = this.plugins.map(() => new Uint8Array(this.nodes.length).fill(nothing));
    this.fill = this.plugins.map(() => new Uint8Array(this.nodes.length));
    this.tally = kinds.map(() => 0);
    for (const pair of all) this.set(pair);
  }

  /** Puts one pair in its place. A pair of a new plugin or node makes room for it. */
  set(pair: Pair): void {
    let row = this.rows.get(pair.plugin);
    let column = this.columns.get(pair.node);
    if (row === undefined) row = this.addPlugin(pair.plugin);
    if (column === undefined) column = this.addNode(pair.node);
    const kind = indexOf(pair.kind);
    const before = this.kind[row]![column]!;
    if (before !== nothing) this.tally[before]!--;
    this.tally[kind]!++;
    this.kind[row]![column] = kind;
    this.fill[row]![column] = fillOf(pair);
  }

  /** Index into `kinds`, or `nothing`. */
  kindAt(row: number, column: number): number {
    return this.kind[row]?.[column] ?? nothing;
  }

  /** Its progress, 0 to 255. */
  fillAt(row: number, column: number): number {
    return this.fill[row]?.[column] ?? 0;
  }

  columnOf(node: string): number | undefined {
    return this.columns.get(node);
  }

  rowOf(plugin: string): number | undefined {
    return this.rows.get(plugin);
  }

  // Plans do not grow, so these come at the end, and seldom.
  private addPlugin(name: string): number {
    this.rows.set(name, this.plugins.length);
    this.kind.push(new Uint8Array(this.nodes.length).fill(nothing));
    this.fill.push(new Uint8Array(this.nodes.length));
    return this.plugins.push(name) - 1;
  }

  private addNode(name: string): number {
    this.columns.set(name, this.nodes.length);
    this.kind = this.kind.map((cells) => Uint8Array.from([...cells, nothing]));
    this.fill = this.fill.map((cells) => Uint8Array.from([...cells, 0]));
    return this.nodes.push(name) - 1;
  }
}

function fillOf(pair: Pair): number {
  const { progress } = pair;
  if (!progress || progress.total <= 0) return 0;
  return Math.round(255 * Math.min(1, Math.max(0, progress.completed / progress.total)));
}

/** By name, numbers in names by their value: n2 before n10. */
export function sorted(names: Iterable<string>): string[] {
  return [...names]
    .map((name) => [name.replace(/\d+/g, (digits) => digits.padStart(12, "0")), name] as const)
    .sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : a[1] < b[1] ? -1 : 1))
    .map(([, name]) => name);
}
