import { LatentkitError } from "../base/errors.js";
import { isPlainObject, keysInOrder, rememberOrder } from "../io/json/lossless.js";

type Entries = Record<string, unknown>;

/** Keys that hold a graph: of ComfyUI's POST /prompt, of services that run ComfyUI, and of templates. */
const WRAPPERS = ["prompt", "workflow", "input", "nodes"] as const;
const MAX_WRAPPERS = 3;

/** Ids as the editor writes them, "12:3" inside a subgraph: the value of such a key is meant as a node. */
const NODE_ID = /^\d+(?::\d+)*$/;
const MAX_NAMED = 5;

/** Returns the graph inside a request body such as `{ "input": { "workflow": … } }`, any other object unchanged. */
export function unwrapGraph(object: Entries): Entries {
  return innerGraph(object, MAX_WRAPPERS) ?? object;
}

function innerGraph(object: Entries, left: number): Entries | undefined {
  if (isEditorFile(object) || Object.values(object).some(isNode)) return object;
  for (const key of left > 0 ? WRAPPERS : []) {
    const inner = Object.hasOwn(object, key) ? object[key] : undefined;
    const graph = isPlainObject(inner) ? innerGraph(inner, left - 1) : undefined;
    if (graph !== undefined) return graph;
  }
  return undefined;
}

/** Throws graph.invalid for a workflow as the editor saves it. */
export function refuseEditorFile(object: Entries): void {
  if (!isEditorFile(object)) return;
  throw new LatentkitError(
    "graph.invalid",
    "Graph: expected API format, received a workflow as the editor saves it, which convertWorkflow converts.",
  );
}

/** Whether an object is a workflow as the editor saves it. */
export const isEditorFile = ({ nodes, links }: Entries): boolean => Array.isArray(nodes) && Array.isArray(links);

const isNode = (value: unknown): boolean => isPlainObject(value) && Object.hasOwn(value, "class_type");

/** Nodes of a graph, and the keys of entries that are no nodes. */
export interface NodesOnly {
  readonly prompt: Entries;
  readonly ignored: readonly string[];
}

/**
 * Removes what the author of a graph wrote beside the nodes (`_comment`, `version`, `extra_data`): keys that are no
 * number and hold no object, or one with neither class_type nor inputs. Returns the object itself where there are none.
 */
export function nodesOnly(prompt: Entries): NodesOnly {
  const ignored: string[] = [];
  for (const [key, value] of Object.entries(prompt)) if (!isMeantAsNode(key, value)) ignored.push(key);
  if (ignored.length === 0) return { prompt, ignored };
  const left = new Set(ignored);
  const ids = keysInOrder(prompt).filter((id) => !left.has(id));
  const nodes: Entries = {};
  for (const id of ids) nodes[id] = prompt[id];
  rememberOrder(nodes, ids);
  return { prompt: nodes, ignored };
}

function isMeantAsNode(key: string, value: unknown): boolean {
  if (NODE_ID.test(key)) return true;
  return isPlainObject(value) && (Object.hasOwn(value, "class_type") || Object.hasOwn(value, "inputs"));
}

/** Returns a sentence about entries that are not nodes, if there are any. */
export function ignoredNotes(ignored: readonly string[]): readonly string[] {
  if (ignored.length === 0) return [];
  const named = ignored
    .slice(0, MAX_NAMED)
    .map((key) => JSON.stringify(key.length > 40 ? `${key.slice(0, 37)}...` : key));
  const more = ignored.length - named.length;
  const list = more > 0 ? `${named.join(", ")} and ${more} more` : named.join(", ");
  const [are, have, is] =
    ignored.length === 1 ? ["is not a node", "it has", "it is"] : ["are not nodes", "they have", "they are"];
  return [`Graph: ${list} ${are}, since ${have} no class_type; ${is} ignored.`];
}
