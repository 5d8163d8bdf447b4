import { LatentkitError } from "../../base/errors.js";
import { findDefinitions, type Graph, inputsOf, SEED_INPUTS } from "../../graph/parse.js";
import { type PreparedLink, type PreparedNode, prepareUnchecked } from "../../graph/prepared.js";
import { type EncoderSearch, modelFamilies } from "../../graph/validation/host-refusals.js";
import type { NamedModels } from "../../host/host.js";
import { isDataText } from "../../io/files/input-text.js";
import { NumberLiteral, recall } from "../../io/json/lossless.js";
import type { NoiseStream } from "../../nodes/define.js";
import type { ChoiceContext } from "../../nodes/inputs.js";
import type { Registry } from "../../nodes/registry.js";

/** Origins of a picture that the graph alone determines. */
export interface Origins {
  /** "9.seed": digits. */
  readonly seeds: Readonly<Record<string, string>>;
  readonly noise: Readonly<Record<string, NoiseStream>>;
  /** Names of image files, as the graph has them, by their keys in a receipt. */
  readonly files: ReadonlyMap<string, string>;
  /** Model files that the graph names, and its texts with an embedding in them. */
  readonly models: NamedModels;
}

/** Origins while they are gathered. */
interface Gathered {
  readonly seeds: Record<string, string>;
  readonly noise: Record<string, NoiseStream>;
  readonly files: Map<string, string>;
  readonly modelFiles: NamedModels["files"][number][];
  readonly texts: Set<string>;
}

/** Whether a receipt may hold the value of a node's input. */
export type IsShown = (nodeId: string, input: string) => boolean;

const PREPARED = Symbol("prepared");

/** Class of nodes that do nothing but hold a whole number. */
const NUMBER_HOLDER = "PrimitiveInt";
const EMBEDDING = "embedding:";

/**
 * Seeds, noise, image files and models of the nodes that a node's picture is made from. Read from the graph alone, so that a
 * result taken from a cache has the same ones; of a lazy choice that depends on a computed value both branches count.
 */
export function createOrigins(
  graph: Graph,
  registry: Registry,
  context: ChoiceContext,
  isShown: IsShown,
): (nodeId: string) => Promise<Origins> {
  const definitions = findDefinitions(graph, registry);
  const exists = (id: string) => definitions.has(id);
  const prepare = (id: string) => {
    const raw = graph.prompt[id] as object;
    const inputs = inputsOf(graph.prompt, id) ?? {};
    const definition = definitions.get(id)!;
    const facts = [definition, context.host, context.inputDir, context.files];
    const read = (some: Readonly<Record<string, unknown>>) =>
      prepareUnchecked({ id, displayId: id, definition, inputs: some }, context, exists);
    const node = recall(raw, PREPARED, () => read(inputs), facts);
    const visible = Object.fromEntries(Object.entries(inputs).filter(([input]) => isShown(id, input)));
    const isWhole = Object.keys(visible).length === Object.keys(inputs).length;
    return { node, visible: isWhole ? node : read(visible), inputs: visible };
  };
  return async (nodeId) => {
    const prepared = new Map<string, ReturnType<typeof prepare>>();
    // an inner node of an expansion is not in the graph: any node of the graph may have expanded to it
    const queue = exists(nodeId) ? [nodeId] : [...graph.ids];
    for (let id = queue.pop(); id !== undefined; id = queue.pop()) {
      if (prepared.has(id)) continue;
      const one = prepare(id);
      prepared.set(id, one);
      for (const { source } of await followed(one.node)) queue.push(source);
    }
    const search = { graph, definitions };
    const origins: Gathered = { seeds: {}, noise: {}, files: new Map(), modelFiles: [], texts: new Set() };
    const heldBy = (id: string) => {
      const { node, visible, inputs } = prepared.get(id) ?? {};
      return node?.definition.key === NUMBER_HOLDER && Object.hasOwn(inputs!, "value")
        ? visible!.values.value
        : undefined;
    };
    for (const id of graph.ids) {
      const one = prepared.get(id);
      if (one === undefined) continue;
      add(one.visible, one.inputs, origins, heldBy);
      origins.modelFiles.push(...presetFilesOf(one.visible, context.host, search));
    }
    const { seeds, noise, files, modelFiles, texts } = origins;
    return { seeds, noise, files, models: { files: modelFiles, texts: [...texts] } };
  };
}

function add(
  { id, definition, values }: PreparedNode,
  inputs: Readonly<Record<string, unknown>>,
  origins: Gathered,
  heldBy: (id: string) => unknown,
): void {
  for (const input of SEED_INPUTS) {
    if (!Object.hasOwn(inputs, input)) continue;
    const given = inputs[input];
    const digits = digitsOf(Array.isArray(given) ? heldBy(String(given[0])) : values[input]);
    if (digits !== undefined) origins.seeds[`${id}.${input}`] = digits;
  }
  const stream = definition.noiseStream?.(values);
  if (stream !== undefined) origins.noise[id] = stream;
  for (const [input, { options, files }] of Object.entries(definition.inputs)) {
    const value = values[input];
    if (typeof value !== "string") continue;
    // A data: text is named by its input, since the text itself is in the file already.
    if (options.image_upload === true) origins.files.set(isDataText(value) ? `data:${id}.${input}` : value, value);
    if (files !== undefined) origins.modelFiles.push({ kind: files, name: value });
    if (value.includes(EMBEDDING)) origins.texts.add(value);
  }
}

/** Files that the presets of a node stand for; none of one that the host lacks. */
function presetFilesOf(
  { id, definition, values }: PreparedNode,
  host: ChoiceContext["host"],
  search: EncoderSearch,
): NamedModels["files"] {
  return Object.entries(definition.inputs).flatMap(([input, { preset }]) => {
    const value = values[input];
    if (host === undefined || preset === undefined || typeof value !== "string") return [];
    return modelFamilies(id, host, search).flatMap((family) => {
      try {
        return preset.filesOf(value, family, host);
      } catch (error) {
        if (error instanceof LatentkitError) return [];
        throw error;
      }
    });
  });
}

function digitsOf(value: unknown): string | undefined {
  if (value instanceof NumberLiteral) return value.text;
  return ["bigint", "number", "string"].includes(typeof value) ? String(value) : undefined;
}

/** Links that the node's result depends on: of the lazy ones, those it requests first if its other inputs are known. */
async function followed({ definition, links, values }: PreparedNode): Promise<readonly PreparedLink[]> {
  const isDecided =
    definition.checkLazy !== undefined && !definition.inputIsList && links.every(({ spec }) => spec.lazy);
  if (!isDecided || links.length === 0) return links;
  try {
    const requested = await definition.checkLazy!({ ...values });
    return links.filter(({ input }) => requested.includes(input));
  } catch {
    // the reason shows when the node runs
    return links;
  }
}
