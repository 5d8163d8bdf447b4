import { isPlainObject } from "../io/json/lossless.js";

/**
 * Keys that hold a graph: of ComfyUI's POST /prompt, of what its editor returns to scripts, of services that run ComfyUI, and
 * of templates. One in API format comes before the workflow beside it.
 */
const WRAPPERS = ["prompt", "output", "workflow", "input", "nodes"] as const;
const MAX_WRAPPERS = 3;

/**
 * Returns the graph inside a request body such as `{ "input": { "workflow": … } }`, or the only one inside what another
 * program wrote, such as ComfyUI's history of one prompt; any other object unchanged.
 */
export function unwrapGraph(object: Record<string, unknown>): Record<string, unknown> {
  return innerGraph(object, MAX_WRAPPERS) ?? object;
}

function innerGraph(value: unknown, left: number): Record<string, unknown> | undefined {
  if (!isPlainObject(value) && !Array.isArray(value)) return undefined;
  const object = value as Record<string, unknown>;
  if (isPlainObject(value) && (isEditorFile(object) || Object.values(object).some(isNode))) return object;
  if (left === 0) return undefined;
  for (const key of WRAPPERS) {
    const graph = Object.hasOwn(object, key) ? innerGraph(object[key], left - 1) : undefined;
    if (graph !== undefined) return graph;
  }
  const graphs = Object.values(object).map((inner) => innerGraph(inner, left - 1));
  const [graph, other] = graphs.filter((inner) => inner !== undefined);
  return other === undefined ? graph : undefined;
}

/** Whether an object is a workflow as the editor saves it. */
export const isEditorFile = ({ nodes, links }: Readonly<Record<string, unknown>>): boolean =>
  Array.isArray(nodes) && Array.isArray(links);

const isNode = (value: unknown): boolean => isPlainObject(value) && Object.hasOwn(value, "class_type");
