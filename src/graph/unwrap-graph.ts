import { LatentkitError } from "../errors.js";
import { isPlainObject, keysInOrder, rememberOrder } from "../io/json-lossless.js";

type Entries = Record<string, unknown>;

/** Where request bodies keep a graph: ComfyUI's own POST /prompt, and the workers of hosts around it. */
const WRAPPERS = ["prompt", "workflow", "input"] as const;
const MAX_WRAPPERS = 3;

/** Ids as editors write them, "12:3" inside a subgraph: what such a key holds is meant as a node. */
const NODE_ID = /^\d+(?::\d+)*$/;
const MOST_NAMED = 5;

/** The graph inside a request body such as `{ "input": { "workflow": … } }`; any other object as it is. */
export function unwrapGraph(object: Entries): Entries {
  return innerGraph(object, MAX_WRAPPERS) ?? object;
}

function innerGraph(object: Entries, left: number): Entries | undefined {
  if (isEditorFile(object) || Object.values(object).some(isNode)) return object;
  for (const key of left > 0 ? WRAPPERS : []) {
    const inner = Object.hasOwn(object, key) ? object[key] : undefined;
    const found = isPlainObject(inner) ? innerGraph(inner, left - 1) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Fails with graph.invalid for a workflow as the editor saves it. */
export function refuseEditorFile(object: Entries): void {
  if (!isEditorFile(object)) return;
  throw new LatentkitError(
    "graph.invalid",
    "Graph: this is a workflow as the editor saves it; export it in API format: File → Export (API) in the editor's menu, or Save (API Format) in older versions, where the settings enable dev mode options.",
  );
}

const isEditorFile = ({ nodes, links }: Entries): boolean => Array.isArray(nodes) && Array.isArray(links);

const isNode = (value: unknown): boolean => isPlainObject(value) && Object.hasOwn(value, "class_type");

/** Nodes of a graph without the entries that are none, and those entries' keys. */
export interface NodesOnly {
  readonly prompt: Entries;
  readonly ignored: readonly string[];
}

/**
 * Leaves out what a graph's author wrote beside the nodes (`_comment`, `version`, `extra_data`): keys that are no
 * number and hold no object, or one with neither class_type nor inputs. The same object where there are none.
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

/** One sentence about entries that are no nodes; undefined where there are none. */
export function ignoredNote(ignored: readonly string[]): string | undefined {
  if (ignored.length === 0) return undefined;
  const named = ignored
    .slice(0, MOST_NAMED)
    .map((key) => JSON.stringify(key.length > 40 ? `${key.slice(0, 37)}...` : key));
  const more = ignored.length - named.length;
  const list = more > 0 ? `${named.join(", ")} and ${more} more` : named.join(", ");
  const [are, they] = ignored.length === 1 ? ["is no node", "it is"] : ["are no nodes", "they are"];
  return `Graph: ${list} ${are}, having no class_type; ${they} ignored.`;
}
