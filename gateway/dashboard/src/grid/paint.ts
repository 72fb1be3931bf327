// Draws the visible part of the grid. Cells are sprites, rendered once for each kind, size and theme, and
// copied pixel by pixel.
import { kinds } from "../model/kinds";
import { noPair, type Matrix } from "../model/matrix";
import type { Cell, Layout } from "./layout";

/** The colours of the current theme, from the style sheet. */
export interface Palette {
  kind: string[]; // by index into kinds
  surface: string;
  quiet: string; // behind the progress of running cells
  line: string;
  text: string;
  glyph: string;
  focus: string;
}

export function palette(): Palette {
  const style = getComputedStyle(document.documentElement);
  const color = (name: string) => style.getPropertyValue(name).trim();
  return {
    kind: kinds.map((k) => color(`--kind-${k.kind.replaceAll("_", "-")}`)),
    surface: color("--surface"),
    quiet: color("--kind-running-quiet"),
    line: color("--line-strong"),
    text: color("--text-2"),
    glyph: color("--glyph"),
    focus: color("--focus"),
  };
}

const levels = 8; // of progress
const glyphFrom = 6; // pixels: smaller cells have no shape
const faint = 0.13; // opacity of cells that are not highlighted

const runningIndex = kinds.findIndex((k) => k.kind === "running");
const hollow = new Set(kinds.flatMap((k, index) => (k.hollow ? [index] : [])));

/** Sprites of all kinds for one cell size, palette and screen density, as pixels. */
export class Sprites {
  /** Device pixels. */
  readonly side: number;
  readonly surface: number;

  private readonly pixels: Uint32Array;
  private readonly width: number;

  constructor(
    private readonly colors: Palette,
    readonly cell: number,
    readonly density: number,
  ) {
    this.side = Math.max(1, Math.round(cell * density));
    const sheet = document.createElement("canvas");
    sheet.width = this.width = this.side * Math.max(kinds.length, levels + 1);
    sheet.height = this.side * 4; // kinds, levels of running cells; both again, faint
    const context = sheet.getContext("2d", { willReadFrequently: true })!;
    context.fillStyle = colors.surface;
    context.fillRect(0, 0, sheet.width, sheet.height);
    this.surface = new Uint32Array(context.getImageData(0, 0, 1, 1).data.buffer)[0]!;
    for (const [line, alpha] of [[0, 1], [2, faint]] as const) {
      kinds.forEach((_, index) => this.sprite(context, index, line * this.side, alpha));
      for (let level = 0; level <= levels; level++) this.running(context, level, (line + 1) * this.side, alpha);
    }
    this.pixels = new Uint32Array(context.getImageData(0, 0, sheet.width, sheet.height).data.buffer);
  }

  private sprite(context: CanvasRenderingContext2D, index: number, y: number, alpha: number): void {
    const [x, side] = [index * this.side, this.side];
    context.fillStyle = this.colors.kind[index]!;
    context.globalAlpha = alpha;
    if (!hollow.has(index)) {
      context.fillRect(x, y, side, side);
    } else if (this.cell >= glyphFrom) {
      this.outline(context, x, y);
    } else {
      const inset = this.cell > 2 ? Math.round(side / 4) : 0; // a dot
      context.globalAlpha = alpha * 0.75;
      context.fillRect(x + inset, y + inset, side - 2 * inset, side - 2 * inset);
    }
    context.globalAlpha = alpha;
    const { glyph } = kinds[index]!;
    if (glyph && this.cell >= glyphFrom) {
      context.save();
      context.translate(x, y);
      context.scale(side / 10, side / 10);
      context.strokeStyle = hollow.has(index) ? this.colors.kind[index]! : this.colors.glyph;
      context.lineWidth = this.cell < 10 ? 1.9 : 1.5;
      context.lineCap = "round";
      context.stroke(new Path2D(glyph));
      context.restore();
    }
    context.globalAlpha = 1;
  }

  // From the bottom up to the progress.
  private running(context: CanvasRenderingContext2D, level: number, y: number, alpha: number): void {
    const [x, side] = [level * this.side, this.side];
    const height = Math.round((side * level) / levels);
    context.globalAlpha = alpha;
    context.fillStyle = this.colors.quiet;
    context.fillRect(x, y, side, side - height);
    context.fillStyle = this.colors.kind[runningIndex]!;
    context.fillRect(x, y + side - height, side, height);
    if (this.cell >= glyphFrom) this.outline(context, x, y);
    context.globalAlpha = 1;
  }

  private outline(context: CanvasRenderingContext2D, x: number, y: number): void {
    const { side } = this;
    const thick = Math.max(1, Math.round(this.density));
    context.fillRect(x, y, side, thick);
    context.fillRect(x, y + side - thick, side, thick);
    context.fillRect(x, y + thick, thick, side - 2 * thick);
    context.fillRect(x + side - thick, y + thick, thick, side - 2 * thick);
  }

  /** Copies the sprite into an image of this size, clipped to it. */
  put(image: Uint32Array, width: number, height: number, kind: number, fill: number, dim: boolean, x: number, y: number): void {
    const { side, pixels } = this;
    const runs = kind === runningIndex;
    const left = side * (runs ? Math.floor((fill * levels) / 255) : kind);
    const top = side * ((runs ? 1 : 0) + (dim ? 2 : 0));
    const columns = Math.min(side, width - x);
    const last = Math.min(side, height - y);
    for (let line = Math.max(0, -y); line < last; line++) {
      let from = (top + line) * this.width + left;
      let to = (y + line) * width + x;
      for (const end = to + columns; to < end; ) image[to++] = pixels[from++]!;
    }
  }
}

export interface Scene {
  matrix: Matrix;
  layout: Layout;
  sprites: Sprites;
  colors: Palette;
  top: number;
  height: number;
  /** Indexes of the highlighted kinds; empty: all. */
  only: ReadonlySet<number>;
  focus: Cell | null;
  hover: Cell | null;
}

/** Copies pixel by pixel: for 20,000 cells this takes a few milliseconds, a tenth of one image call for each. */
export function paint(context: CanvasRenderingContext2D, scene: Scene): void {
  const { matrix, layout, sprites, colors, top, height, only } = scene;
  const { density } = sprites;
  const { width: across, height: down } = context.canvas;
  if (across === 0 || down === 0) return;
  const data = context.createImageData(across, down);
  const image = new Uint32Array(data.data.buffer).fill(sprites.surface);
  const bands = layout.visible(top, height);
  for (const band of bands) {
    band.rows.forEach((row, line) => {
      const y = Math.round((band.y + line * layout.pitch - top) * density);
      for (let position = 0; position < band.count; position++) {
        const column = layout.columnAt(band, band.first + position);
        const kind = matrix.kindAt(row, column);
        if (kind === noPair) continue;
        const x = Math.round((layout.gutter + position * layout.pitch) * density);
        sprites.put(image, across, down, kind, matrix.fillAt(row, column), only.size > 0 && !only.has(kind), x, y);
      }
    });
  }
  context.putImageData(data, 0, 0);
  for (const band of bands) captions(context, scene, band);
  frame(context, scene, scene.hover, colors.line, 1.5);
  frame(context, scene, scene.focus, colors.focus, 2);
}

function captions(context: CanvasRenderingContext2D, scene: Scene, band: Layout["bands"][number]): void {
  const { matrix, layout, colors, sprites, top } = scene;
  const font = (size: number) => `${size}px system-ui, sans-serif`;
  context.setTransform(sprites.density, 0, 0, sprites.density, 0, 0);
  context.fillStyle = colors.text;
  context.textBaseline = "middle";
  context.font = font(11);
  const y = band.y - top;
  if (band.caption) {
    const first = matrix.nodes[layout.columnAt(band, band.first)]!;
    const last = matrix.nodes[layout.columnAt(band, band.caption.last)]!;
    const nodes = first === last ? first : `${first} – ${last}`;
    const title = layout.apart ? `${matrix.plugins[band.rows[0]!]}: ${nodes}` : nodes;
    context.fillText(title, layout.gutter, y - layout.caption / 2, layout.width - layout.gutter);
  }
  if (layout.named) {
    context.font = font(Math.min(12, layout.pitch));
    band.rows.forEach((row, line) => {
      context.fillText(matrix.plugins[row]!, 0, y + line * layout.pitch + layout.cell / 2 + 0.5, layout.gutter - 8);
    });
  }
  context.setTransform(1, 0, 0, 1, 0, 0);
}

function frame(context: CanvasRenderingContext2D, scene: Scene, cell: Cell | null, color: string, width: number): void {
  const box = cell && scene.layout.boxOf(cell);
  if (!box) return;
  const { density } = scene.sprites;
  const margin = width + 0.5;
  const side = scene.layout.cell + 2 * margin;
  context.strokeStyle = color;
  context.lineWidth = width * density;
  context.strokeRect((box.x - margin) * density, (box.y - scene.top - margin) * density, side * density, side * density);
}
