import { findDefinitions, type Graph } from "../../graph/parse.js";
import { type PreparedLink, type PreparedNode, prepareUnchecked } from "../../graph/prepared.js";
import { isPlainObject, NumberLiteral, recall } from "../../io/json-lossless.js";
import type { NoiseStream } from "../../nodes/define.js";
import type { ChoiceContext } from "../../nodes/inputs.js";
import type { Registry } from "../../nodes/registry.js";

/** What the graph itself says of where a picture comes from. */
export interface Origins {
  /** "9.seed": digits. */
  readonly seeds: Readonly<Record<string, string>>;
  readonly noise: Readonly<Record<string, NoiseStream>>;
  /** Names of image files, as the graph has them. */
  readonly files: readonly string[];
}

/** The same while it is gathered. */
interface Gathered {
  readonly seeds: Record<string, string>;
  readonly noise: Record<string, NoiseStream>;
  readonly files: Set<string>;
}

/** Whether a receipt may tell the value of a node's input. */
export type IsShown = (nodeId: string, input: string) => boolean;

const PREPARED = Symbol("prepared");

const SEEDS = ["seed", "noise_seed"];

/**
 * Seeds, noise and image files of the nodes that a node's picture is made from. Read from the graph alone, so that a
 * result taken from a cache has the same ones; of a lazy choice that hangs on a computed value both branches count.
 */
export function createOrigins(
  graph: Graph,
  registry: Registry,
  place: ChoiceContext,
  isShown: IsShown,
): (nodeId: string) => Promise<Origins> {
  const definitions = findDefinitions(graph, registry);
  const exists = (id: string) => definitions.has(id);
  const prepare = (id: string) => {
    const raw = graph.prompt[id] as { inputs?: unknown };
    const inputs = isPlainObject(raw.inputs) ? raw.inputs : {};
    const definition = definitions.get(id)!;
    const around = [definition, place.host, place.inputDir];
    const read = (given: Readonly<Record<string, unknown>>) =>
      prepareUnchecked({ id, displayId: id, definition, inputs: given }, place, exists);
    const node = recall(raw, PREPARED, () => read(inputs), around);
    const told = Object.entries(inputs).filter(([input]) => isShown(id, input));
    if (told.length === Object.keys(inputs).length) return { node, shown: node, given: inputs };
    const given = Object.fromEntries(told);
    return { node, shown: read(given), given };
  };
  return async (nodeId) => {
    const prepared = new Map<string, ReturnType<typeof prepare>>();
    // the inner nodes of an expansion are none of the graph's: any of these may have made it
    const queue = exists(nodeId) ? [nodeId] : [...graph.ids];
    for (let id = queue.pop(); id !== undefined; id = queue.pop()) {
      if (prepared.has(id)) continue;
      const made = prepare(id);
      prepared.set(id, made);
      for (const { source } of await followed(made.node)) queue.push(source);
    }
    const found: Gathered = { seeds: {}, noise: {}, files: new Set() };
    for (const id of graph.ids) {
      const made = prepared.get(id);
      if (made !== undefined) add(made.shown, made.given, found);
    }
    return { ...found, files: [...found.files] };
  };
}

function add(
  { id, definition, values }: PreparedNode,
  given: Readonly<Record<string, unknown>>,
  found: Gathered,
): void {
  for (const input of SEEDS) {
    const digits = Object.hasOwn(given, input) ? digitsOf(values[input]) : undefined;
    if (digits !== undefined) found.seeds[`${id}.${input}`] = digits;
  }
  const stream = definition.noiseStream?.(values);
  if (stream !== undefined) found.noise[id] = stream;
  for (const [input, { options }] of Object.entries(definition.inputs)) {
    const file = values[input];
    if (options.image_upload === true && typeof file === "string") found.files.add(file);
  }
}

function digitsOf(value: unknown): string | undefined {
  if (value instanceof NumberLiteral) return value.text;
  return ["bigint", "number", "string"].includes(typeof value) ? String(value) : undefined;
}

/** Links that the node's result hangs on: of lazy ones those it asks for first, where its other inputs are known. */
async function followed({ definition, links, values }: PreparedNode): Promise<readonly PreparedLink[]> {
  const isDecided =
    definition.checkLazy !== undefined && !definition.inputIsList && links.every(({ spec }) => spec.lazy);
  if (!isDecided || links.length === 0) return links;
  try {
    const asked = await definition.checkLazy!({ ...values });
    return links.filter(({ input }) => asked.includes(input));
  } catch {
    // the reason shows when the node runs
    return links;
  }
}
