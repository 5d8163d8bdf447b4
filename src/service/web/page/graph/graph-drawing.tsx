import { useId, useMemo, useState } from "preact/hooks";
import type { GraphNode } from "../api.ts";
import { Scroller } from "../parts/components.tsx";

const MOST_CHARACTERS = 26;
const ZOOMS = [0.25, 0.4, 0.6, 0.8, 1, 1.3];

/** A graph as boxes and wires, read-only. A list of its nodes says the same in words. */
export function GraphDrawing({ nodes }: { nodes: readonly GraphNode[] }) {
  const layout = useMemo(() => layOut(nodes), [nodes]);
  const [zoom, setZoom] = useState(2);
  const [selected, setSelected] = useState<string>();
  const scale = ZOOMS[zoom]!;
  const choice = useId();
  const chosen = nodes.find(({ id }) => id === selected);
  return (
    <section class="drawing" aria-label="Graph">
      <div class="drawing-bar">
        <span class="hint">{nodes.length === 1 ? "1 node" : `${nodes.length} nodes`}</span>
        <button type="button" class="icon" aria-label="Smaller" disabled={zoom === 0} onClick={() => setZoom(zoom - 1)}>
          −
        </button>
        <button
          type="button"
          class="icon"
          aria-label="Larger"
          disabled={zoom === ZOOMS.length - 1}
          onClick={() => setZoom(zoom + 1)}
        >
          +
        </button>
      </div>
      <Scroller label="Drawing" kind="drawing-stage">
        <svg
          width={layout.width * scale}
          height={layout.height * scale}
          viewBox={`0 0 ${layout.width} ${layout.height}`}
          aria-hidden="true"
        >
          {layout.wires.map(({ from, to, path }, i) => (
            <path key={i} class={from === selected || to === selected ? "wire chosen" : "wire"} d={path} />
          ))}
          {layout.placed.map((placed) => (
            <Box
              key={placed.node.id}
              placed={placed}
              isChosen={placed.node.id === selected}
              onChoose={() => setSelected(placed.node.id)}
            />
          ))}
        </svg>
      </Scroller>
      <div class="drawing-choice">
        <label for={choice}>Node</label>
        <select
          id={choice}
          value={selected ?? ""}
          onChange={({ currentTarget }) => setSelected(currentTarget.value || undefined)}
        >
          <option value="">Choose one to see its values</option>
          {nodes.map(({ id, title, type }) => (
            <option key={id} value={id}>
              {id}: {title === type ? type : `${title} (${type})`}
            </option>
          ))}
        </select>
      </div>
      {chosen !== undefined && <NodeFacts node={chosen} />}
    </section>
  );
}

function Box({ placed, isChosen, onChoose }: { placed: PlacedNode; isChosen: boolean; onChoose: () => void }) {
  const { node, x, y, height } = placed;
  const hidden = node.inputs.length - MOST_LINES;
  const classes = ["node", isChosen ? "chosen" : "", node.is_known ? "" : "unknown"].join(" ");
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the keyboard has the list of nodes below
    <g class={classes} transform={`translate(${x} ${y})`} onClick={onChoose}>
      <rect width={NODE_WIDTH} height={height} rx={7} />
      <text class="node-title" x={12} y={19}>
        {cut(node.title)}
      </text>
      <text class="node-type" x={12} y={35}>
        {cut(`${node.id} · ${node.type}`)}
      </text>
      {node.inputs.slice(0, hidden > 0 ? MOST_LINES - 1 : MOST_LINES).map(({ name, value, from }, i) => (
        <g key={name} transform={`translate(0 ${lineY(i)})`}>
          {from !== undefined && <circle cx={0} cy={-4} r={3.5} />}
          <text class="node-input" x={12}>
            {cut(name, 14)}
          </text>
          {value !== undefined && (
            <text class="node-value" x={NODE_WIDTH - 12} text-anchor="end">
              {cut(value.replace(/\s+/g, " "), 18)}
            </text>
          )}
        </g>
      ))}
      {hidden > 0 && (
        <text class="node-input" x={12} y={lineY(MOST_LINES) - LINE_HEIGHT}>
          and {hidden + 1} more
        </text>
      )}
    </g>
  );
}

const cut = (text: string, most = MOST_CHARACTERS) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

function NodeFacts({ node }: { node: GraphNode }) {
  return (
    <div class="node-facts">
      <h4>{node.title}</h4>
      {!node.is_known && <p class="problem">This version of latentkit does not know the class {node.type}.</p>}
      <dl class="facts">
        {node.inputs.map(({ name, value, from }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{from === undefined ? value : `output ${from.output} of node ${from.node}`}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

/** Sizes of the drawing, px. */
const NODE_WIDTH = 230;
const HEAD_HEIGHT = 44;
const LINE_HEIGHT = 20;
const GAP_X = 70;
const GAP_Y = 22;
const MARGIN = 16;
/** Lines of a node that are drawn; the rest is counted. */
const MOST_LINES = 12;

/** A node with its place in the drawing. */
interface PlacedNode {
  readonly node: GraphNode;
  readonly x: number;
  readonly y: number;
  readonly height: number;
}

/** A curve from an output to an input. */
export interface Wire {
  readonly from: string;
  readonly to: string;
  readonly path: string;
}

export interface Layout {
  readonly placed: readonly PlacedNode[];
  readonly wires: readonly Wire[];
  readonly width: number;
  readonly height: number;
}

/** Places each node to the right of all that it reads, and near the height of these. */
function layOut(nodes: readonly GraphNode[]): Layout {
  const columns = columnsOf(nodes);
  const placed = new Map<string, PlacedNode>();
  for (const [column, members] of columns.entries()) {
    let y = MARGIN;
    for (const node of sortedByInputs(members, placed)) {
      const height = heightOf(node);
      placed.set(node.id, { node, x: MARGIN + column * (NODE_WIDTH + GAP_X), y, height });
      y += height + GAP_Y;
    }
  }
  const all = [...placed.values()];
  return {
    placed: all,
    wires: wiresOf(all, placed),
    width: MARGIN + Math.max(0, ...all.map(({ x }) => x + NODE_WIDTH)),
    height: MARGIN + Math.max(0, ...all.map(({ y, height }) => y + height)),
  };
}

const lineY = (line: number): number => HEAD_HEIGHT + 14 + line * LINE_HEIGHT;

const heightOf = ({ inputs }: GraphNode) => HEAD_HEIGHT + 8 + Math.min(MOST_LINES, inputs.length) * LINE_HEIGHT;

/** Nodes by the length of the longest way to them; nodes of a circle come last. */
function columnsOf(nodes: readonly GraphNode[]): GraphNode[][] {
  const sources = new Map(nodes.map((node) => [node.id, node.inputs.flatMap(({ from }) => (from ? [from.node] : []))]));
  const depths = new Map<string, number>();
  let left = nodes;
  for (let hasChanged = true; hasChanged && left.length > 0; ) {
    const ready = left.filter(({ id }) => sources.get(id)!.every((source) => depths.has(source)));
    for (const { id } of ready)
      depths.set(id, Math.max(-1, ...sources.get(id)!.map((source) => depths.get(source)!)) + 1);
    hasChanged = ready.length > 0;
    left = left.filter(({ id }) => !depths.has(id));
  }
  const columns: GraphNode[][] = [];
  for (const node of nodes) {
    const depth = depths.get(node.id) ?? columns.length;
    while (columns.length <= depth) columns.push([]);
    columns[depth]!.push(node);
  }
  return columns;
}

function sortedByInputs(nodes: readonly GraphNode[], placed: ReadonlyMap<string, PlacedNode>): GraphNode[] {
  const heights = new Map(
    nodes.map(({ id, inputs }) => {
      const sources = inputs.flatMap(({ from }) => (from ? (placed.get(from.node)?.y ?? []) : []));
      return [id, sources.reduce((sum, y) => sum + y, 0) / Math.max(1, sources.length)];
    }),
  );
  return [...nodes].sort((a, b) => heights.get(a.id)! - heights.get(b.id)!);
}

function wiresOf(all: readonly PlacedNode[], placed: ReadonlyMap<string, PlacedNode>): Wire[] {
  return all.flatMap(({ node, x, y }) =>
    node.inputs.flatMap(({ from }, line) => {
      const source = from === undefined ? undefined : placed.get(from.node);
      if (from === undefined || source === undefined) return [];
      const [x1, y1] = [source.x + NODE_WIDTH, source.y + HEAD_HEIGHT / 2];
      const [x2, y2] = [x, y + lineY(Math.min(line, MOST_LINES - 1)) - 4];
      const bend = Math.max(30, (x2 - x1) / 2);
      return [{ from: from.node, to: node.id, path: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}` }];
    }),
  );
}
