import { useId, useMemo, useState } from "preact/hooks";
import type { GraphNode } from "../api/types.ts";
import { Scroller } from "../parts/scroller.tsx";
import { LINE_HEIGHT, layOut, lineY, MOST_LINES, NODE_WIDTH, type PlacedNode } from "./layout.ts";

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
