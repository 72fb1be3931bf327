// Draws the part of the grid that is in view. Cells are stamps, made once for each kind, size and theme, and
// copied pixel by pixel.
import { kinds } from "../model/kinds";
import { nothing, type Matrix } from "../model/matrix";
import type { Cell, Layout } from "./layout";

/** Colours of the theme that holds now, from the style sheet. */
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
const glyphFrom = 6; // pixels: smaller cells hold no shape
const faint = 0.13; // of those that do not stand out

const runningIndex = kinds.findIndex((k) => k.kind === "running");
const hollow = new Set(kinds.flatMap((k, index) => (k.kind === "not_started" || k.kind === "unsaid" ? [index] : [])));

/** Stamps of all kinds for one size of cells, palette and density of the screen, as pixels. */
export class Stamps {
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
    sheet.height = this.side * 4; // kinds, levels of the running; both again, faint
    const context = sheet.getContext("2d", { willReadFrequently: true })!;
    context.fillStyle = colors.surface;
    context.fillRect(0, 0, sheet.width, sheet.height);
    this.surface = new Uint32Array(context.getImageData(0, 0, 1, 1).data.buffer)[0]!;
    for (const [line, alpha] of [[0, 1], [2, faint]] as const) {
      kinds.forEach((_, index) => this.stamp(context, index, line * this.side, alpha));
      for (let level = 0; level <= levels; level++) this.running(context, level, (line + 1) * this.side, alpha);
    }
    this.pixels = new Uint32Array(context.getImageData(0, 0, sheet.width, sheet.height).data.buffer);
  }

  private stamp(context: CanvasRenderingContext2D, index: number, y: number, alpha: number): void {
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

  // From the bottom, as far as it has got.
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

  /** Copies the stamp into an image of this size; what lies outside is left out. */
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
  stamps: Stamps;
  colors: Palette;
  top: number;
  height: number;
  /** Kinds to stand out (indexes); empty: all. */
  only: ReadonlySet<number>;
  focus: Cell | null;
  hover: Cell | null;
}

/** Pixel by pixel: of 20,000 cells that takes a few milliseconds, an order less than an image for each. */
export function paint(context: CanvasRenderingContext2D, scene: Scene): void {
  const { matrix, layout, stamps, colors, top, height, only } = scene;
  const { density } = stamps;
  const { width: across, height: down } = context.canvas;
  if (across === 0 || down === 0) return;
  const data = context.createImageData(across, down);
  const image = new Uint32Array(data.data.buffer).fill(stamps.surface);
  const bands = layout.visible(top, height);
  for (const band of bands) {
    band.rows.forEach((row, line) => {
      const y = Math.round((band.y + line * layout.pitch - top) * density);
      for (let position = 0; position < band.count; position++) {
        const column = layout.columnAt(band, band.first + position);
        const kind = matrix.kindAt(row, column);
        if (kind === nothing) continue;
        const x = Math.round((layout.gutter + position * layout.pitch) * density);
        stamps.put(image, across, down, kind, matrix.fillAt(row, column), only.size > 0 && !only.has(kind), x, y);
      }
    });
  }
  context.putImageData(data, 0, 0);
  for (const band of bands) captions(context, scene, band);
  frame(context, scene, scene.hover, colors.line, 1.5);
  frame(context, scene, scene.focus, colors.focus, 2);
}

function captions(context: CanvasRenderingContext2D, scene: Scene, band: Layout["bands"][number]): void {
  const { matrix, layout, colors, stamps, top } = scene;
  const font = (size: number) => `${size}px system-ui, sans-serif`;
  context.setTransform(stamps.density, 0, 0, stamps.density, 0, 0);
  context.fillStyle = colors.text;
  context.textBaseline = "middle";
  context.font = font(11);
  const y = band.y - top;
  if (band.caption) {
    const first = matrix.nodes[layout.columnAt(band, band.first)]!;
    const last = matrix.nodes[layout.columnAt(band, band.caption.last)]!;
    const title = first === last ? first : `${first} – ${last}`;
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
  const { density } = scene.stamps;
  const room = width + 0.5;
  const side = scene.layout.cell + 2 * room;
  context.strokeStyle = color;
  context.lineWidth = width * density;
  context.strokeRect((box.x - room) * density, (box.y - scene.top - room) * density, side * density, side * density);
}
