import type { GraphNode } from "../api/types.ts";

/** Sizes of the drawing, px. */
export const NODE_WIDTH = 230;
const HEAD_HEIGHT = 44;
export const LINE_HEIGHT = 20;
const GAP_X = 70;
const GAP_Y = 22;
const MARGIN = 16;
/** Lines of a node that are drawn; the rest is counted. */
export const MOST_LINES = 12;

/** A node with its place in the drawing. */
export interface PlacedNode {
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
export function layOut(nodes: readonly GraphNode[]): Layout {
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

export const lineY = (line: number): number => HEAD_HEIGHT + 14 + line * LINE_HEIGHT;

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
