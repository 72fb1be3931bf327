// Draws the part of the grid that is in view. Cells are stamps, drawn once for each kind, size and theme:
// a full screen of small cells takes a few milliseconds.
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

const runningIndex = kinds.findIndex((k) => k.kind === "running");
const hollow = new Set(kinds.flatMap((k, index) => (k.kind === "not_started" || k.kind === "unsaid" ? [index] : [])));

/** Stamps of all kinds for one size of cells, palette and density of the screen. */
export class Stamps {
  private readonly sheet: HTMLCanvasElement;
  private readonly side: number; // device pixels

  constructor(
    private readonly colors: Palette,
    readonly cell: number,
    readonly density: number,
  ) {
    this.side = Math.max(1, Math.round(cell * density));
    this.sheet = document.createElement("canvas");
    this.sheet.width = this.side * Math.max(kinds.length, levels + 1);
    this.sheet.height = this.side * 2;
    const context = this.sheet.getContext("2d")!;
    kinds.forEach((_, index) => this.stamp(context, index));
    for (let level = 0; level <= levels; level++) this.running(context, level);
  }

  private stamp(context: CanvasRenderingContext2D, index: number): void {
    const [x, side] = [index * this.side, this.side];
    context.fillStyle = this.colors.kind[index]!;
    if (!hollow.has(index)) {
      context.fillRect(x, 0, side, side);
    } else if (this.cell >= glyphFrom) {
      const thick = Math.max(1, Math.round(this.density));
      context.fillRect(x, 0, side, side);
      context.clearRect(x + thick, thick, side - 2 * thick, side - 2 * thick);
    } else {
      const inset = this.cell > 2 ? Math.round(side / 4) : 0; // a dot
      context.globalAlpha = 0.75;
      context.fillRect(x + inset, inset, side - 2 * inset, side - 2 * inset);
      context.globalAlpha = 1;
    }
    const { glyph } = kinds[index]!;
    if (!glyph || this.cell < glyphFrom) return;
    context.save();
    context.translate(x, 0);
    context.scale(side / 10, side / 10);
    context.strokeStyle = hollow.has(index) ? this.colors.kind[index]! : this.colors.glyph;
    context.lineWidth = this.cell < 10 ? 1.9 : 1.5;
    context.lineCap = "round";
    context.stroke(new Path2D(glyph));
    context.restore();
  }

  // From the bottom, as far as it has got.
  private running(context: CanvasRenderingContext2D, level: number): void {
    const [x, side] = [level * this.side, this.side];
    const height = Math.round((side * level) / levels);
    context.fillStyle = this.colors.quiet;
    context.fillRect(x, side, side, side - height);
    context.fillStyle = this.colors.kind[runningIndex]!;
    context.fillRect(x, side + side - height, side, height);
    if (this.cell < glyphFrom) return;
    const thick = Math.max(1, Math.round(this.density));
    context.fillRect(x, side, side, thick);
    context.fillRect(x, side, thick, side);
    context.fillRect(x + side - thick, side, thick, side);
  }

  draw(context: CanvasRenderingContext2D, kind: number, fill: number, x: number, y: number): void {
    const [column, line] = kind === runningIndex ? [Math.floor((fill * levels) / 255), 1] : [kind, 0];
    context.drawImage(this.sheet, column * this.side, line * this.side, this.side, this.side, x, y, this.side, this.side);
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

export function paint(context: CanvasRenderingContext2D, scene: Scene): void {
  const { matrix, layout, stamps, colors, top, height, only } = scene;
  const { density } = stamps;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.fillStyle = colors.surface;
  context.fillRect(0, 0, context.canvas.width, context.canvas.height);
  for (const band of layout.visible(top, height)) {
    captions(context, scene, band);
    band.rows.forEach((row, line) => {
      const y = Math.round((band.y + line * layout.pitch - top) * density);
      for (let position = 0; position < band.count; position++) {
        const column = band.columns[band.first + position]!;
        const kind = matrix.kindAt(row, column);
        if (kind === nothing) continue;
        context.globalAlpha = only.size === 0 || only.has(kind) ? 1 : 0.13;
        stamps.draw(context, kind, matrix.fillAt(row, column), Math.round((layout.gutter + position * layout.pitch) * density), y);
      }
    });
    context.globalAlpha = 1;
  }
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
    const first = matrix.nodes[band.columns[band.first]!]!;
    const last = matrix.nodes[band.columns[band.caption.last]!]!;
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
