// The grid of plugins and nodes: a canvas that follows scrolling and draws only the visible part.
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { count } from "../model/format";
import { factsOf, kinds } from "../model/kinds";
import { noPair } from "../model/matrix";
import type { Pair } from "../model/parse";
import { explained } from "../model/rows";
import { keyOf, type RunModel } from "../model/run_model";
import { PairDetails, pairLine } from "../parts/pair";
import { KindIcon, nodeLink, occurring } from "../parts/small";
import { Layout, cellSizes, type Cell } from "./layout";
import { paint, palette, Sprites } from "./paint";

const maxHeight = 460; // pixels of the view

export function Grid({ model, now, stale }: { model: RunModel; now: number; stale: boolean }): JSX.Element {
  const { matrix } = model;
  const onceNames = (model.status?.plugins ?? []).filter((p) => p.once).map((p) => p.plugin).join("/");
  const [width, setWidth] = useState(0);
  const [zoom, setZoom] = useState<number | null>(null);
  const [only, setOnly] = useState<ReadonlySet<number>>(new Set());
  const [focus, setFocus] = useState<Cell | null>(null);
  const [hover, setHover] = useState<{ cell: Cell; x: number; y: number } | null>(null);
  const [top, setTop] = useState(0);
  const [theme, setTheme] = useState(0);
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);

  const shape = useMemo(
    () => ({ nodes: matrix.nodes, plugins: matrix.plugins, once: new Set(onceNames.split("/").filter(Boolean)) }),
    [matrix.nodes, matrix.nodes.length, matrix.plugins.length, onceNames],
  );
  const fit = useMemo(() => fitting(shape, width), [shape, width]);
  const size = zoom ?? fit;
  const layout = useMemo(() => new Layout(shape, Math.max(width, 100), size), [shape, width, size]);
  const height = Math.min(maxHeight, layout.height + 4);
  const density = window.devicePixelRatio || 1;
  const colors = useMemo(palette, [theme]);
  const sprites = useMemo(() => new Sprites(colors, size, density), [colors, size, density]);

  useLayoutEffect(() => {
    const watch = new ResizeObserver(([entry]) => setWidth(Math.floor(entry!.contentRect.width)));
    watch.observe(scroller.current!);
    const themed = () => setTheme((n) => n + 1);
    window.addEventListener("themechange", themed);
    return () => {
      watch.disconnect();
      window.removeEventListener("themechange", themed);
    };
  }, []);

  useEffect(() => {
    const element = canvas.current!;
    const [w, h] = [Math.round(width * density), Math.round(height * density)];
    if (element.width !== w || element.height !== h) [element.width, element.height] = [w, h];
    const context = element.getContext("2d", { alpha: false });
    if (context) paint(context, { matrix, layout, sprites, colors, top, height, only, focus, hover: hover?.cell ?? null });
  });

  const pairAt = (cell: Cell | null): Pair | undefined => {
    const pair = cell && model.pairs.get(keyOf(matrix.plugins[cell.row]!, matrix.nodes[cell.column]!));
    return pair ? explained(pair, model.status, now) : undefined;
  };

  const show = (cell: Cell | null) => {
    setFocus(cell);
    setHover(null);
    const box = cell && layout.boxOf(cell);
    const view = scroller.current;
    if (!box || !view) return;
    if (box.y - layout.caption < view.scrollTop) view.scrollTop = box.y - layout.caption - 4;
    else if (box.y + layout.pitch > view.scrollTop + height) view.scrollTop = box.y + layout.pitch - height + 12;
  };
  const rescale = (by: number) => {
    const index = cellSizes.indexOf(size) + by;
    setZoom(cellSizes[Math.min(cellSizes.length - 1, Math.max(0, index))]!);
    setHover(null);
  };
  const at = (event: MouseEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const cell = layout.cellAt(x, y + top);
    return cell && matrix.kindAt(cell.row, cell.column) !== noPair ? { cell, x, y } : null;
  };
  const key = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "+" || event.key === "=") rescale(1);
    else if (event.key === "-") rescale(-1);
    else if (event.key === "n" || event.key === "p") show(nextTrouble(model, layout, focus, event.key === "n") ?? focus);
    else if (event.key === "Escape") show(null);
    else if (event.key === "Enter" && focus) location.hash = nodeLink(matrix.nodes[focus.column]!);
    else if (/^(Arrow|Home|End|Page)/.test(event.key)) show(layout.move(focus, event.key));
    else return;
    event.preventDefault();
  };

  const focused = pairAt(focus);
  const hovered = hover && pairAt(hover.cell);
  return (
    <div class="grid">
      <div class="grid-tools">
        <Legend model={model} only={only} setOnly={setOnly} />
        <div class="grid-buttons">
          <FindNode model={model} found={(column) => show(cellOfNode(model, column))} />
          <div class="zoom" role="group" aria-label="Size of the cells">
            <button type="button" onClick={() => rescale(-1)} disabled={size === cellSizes[0]} aria-label="Smaller cells">
              −
            </button>
            <button type="button" onClick={() => setZoom(null)} aria-pressed={zoom === null} title="Fit the grid to the view">
              Fit
            </button>
            <button type="button" onClick={() => rescale(1)} disabled={size === cellSizes.at(-1)} aria-label="Larger cells">
              +
            </button>
          </div>
        </div>
      </div>
      <div class="grid-frame">
        <div
          ref={scroller}
          class="grid-view"
          style={{ height: `${height}px` }}
          tabIndex={0}
          role="application"
          aria-roledescription="grid of plugins and nodes"
          aria-label={`${count(matrix.plugins.length)} plugins on ${count(matrix.nodes.length)} nodes. Arrow keys move, n and p go to the next and previous pair that needs attention, plus and minus change the size, Enter opens the node.`}
          onScroll={(event) => setTop(event.currentTarget.scrollTop)}
          onKeyDown={key}
          onMouseMove={(event) => setHover(at(event))}
          onMouseLeave={() => setHover(null)}
          onClick={(event) => show(at(event)?.cell ?? null)}
        >
          <div class="grid-whole" style={{ height: `${layout.height}px` }}>
            <canvas ref={canvas} class={stale ? "stale" : ""} style={{ width: `${width}px`, height: `${height}px` }} aria-hidden="true" />
          </div>
        </div>
        {hover && hovered && (
          <div class="tip" style={{ left: `${Math.min(hover.x + 14, Math.max(0, width - 260))}px`, bottom: `${height - hover.y + 14}px` }} aria-hidden="true">
            <b>{hovered.node}</b> <span class="muted">{hovered.plugin}</span>
            <div class="tip-line">
              <KindIcon kind={hovered.kind} /> {pairLine(hovered, now)}
            </div>
          </div>
        )}
      </div>
      <div class="hidden" aria-live="polite">
        {focused && `${focused.plugin} on ${focused.node}: ${factsOf(focused.kind).label}`}
      </div>
      {focused ? (
        <PairDetails pair={focused} run={model.status?.run ?? ""} now={now} stale={stale} close={() => show(null)} />
      ) : (
        <p class="hint">Select a cell to see its details. Keyboard: arrows, + and −, n and p for pairs that need attention, Enter for the node.</p>
      )}
    </div>
  );
}

function fitting(shape: { nodes: readonly string[]; plugins: readonly string[]; once: ReadonlySet<string> }, width: number): number {
  if (width === 0) return 4;
  const fits = [...cellSizes].reverse().find((cell) => cell <= 18 && new Layout(shape, width, cell).height <= maxHeight);
  return fits && fits >= 4 ? fits : 4;
}

/** The kinds that occur, with their counts. A press on a kind highlights its cells. */
function Legend(props: { model: RunModel; only: ReadonlySet<number>; setOnly: (only: ReadonlySet<number>) => void }): JSX.Element {
  const { model, only, setOnly } = props;
  const toggle = (index: number) => {
    const next = new Set(only);
    if (!next.delete(index)) next.add(index);
    setOnly(next);
  };
  return (
    <ul class="legend" aria-label="Legend: press a kind to highlight its cells">
      {occurring(model.matrix.tally).map(({ kind, index, count: value }) => (
        <li key={kind}>
          <button type="button" aria-pressed={only.has(index)} onClick={() => toggle(index)} title={factsOf(kind).meaning}>
            <KindIcon kind={kind} size={14} /> {factsOf(kind).label} <b>{count(value)}</b>
          </button>
        </li>
      ))}
      {only.size > 0 && (
        <li>
          <button type="button" class="plain" onClick={() => setOnly(new Set())}>
            Show all
          </button>
        </li>
      )}
    </ul>
  );
}

function FindNode({ model, found }: { model: RunModel; found: (column: number) => void }): JSX.Element {
  const [missing, setMissing] = useState(false);
  const find = (event: Event) => {
    event.preventDefault();
    const wanted = String(new FormData(event.currentTarget as HTMLFormElement).get("node") ?? "").trim().toLowerCase();
    if (!wanted) return;
    const { nodes } = model.matrix;
    let column = nodes.findIndex((name) => name.toLowerCase() === wanted);
    if (column < 0) column = nodes.findIndex((name) => name.toLowerCase().includes(wanted));
    setMissing(column < 0);
    if (column >= 0) found(column);
  };
  return (
    <form class="find" role="search" onSubmit={find}>
      <input
        name="node"
        type="search"
        placeholder="Find a node"
        aria-label="Find a node in the grid"
        aria-invalid={missing}
        onInput={() => setMissing(false)}
        onFocus={(event) => event.currentTarget.select()}
        autocomplete="off"
        spellcheck={false}
      />
      {missing && (
        <span class="find-none" role="status">
          node not found
        </span>
      )}
    </form>
  );
}

function cellOfNode(model: RunModel, column: number): Cell | null {
  const { matrix } = model;
  const row = matrix.plugins.findIndex((_, index) => matrix.kindAt(index, column) !== noPair);
  return row < 0 ? null : { row, column };
}

/** Finds the next cell that needs attention, in reading order with wrap-around. */
function nextTrouble(model: RunModel, layout: Layout, from: Cell | null, forward: boolean): Cell | null {
  const { matrix } = model;
  const cells: Cell[] = [];
  for (const band of layout.bands) {
    for (const row of band.rows) {
      for (let position = 0; position < band.count; position++) {
        const column = layout.columnAt(band, band.first + position);
        const kind = matrix.kindAt(row, column);
        const here = from?.row === row && from.column === column;
        if (here || (kind !== noPair && kinds[kind]!.trouble)) cells.push({ row, column });
      }
    }
  }
  if (cells.length === 0) return null;
  const index = from ? cells.findIndex((cell) => cell.row === from.row && cell.column === from.column) : forward ? -1 : 0;
  return cells[(index + (forward ? 1 : -1) + cells.length) % cells.length]!;
}
