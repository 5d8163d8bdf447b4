import { LatentkitError } from "../../../base/errors.js";
import { type KeysConfig, keysAndValues } from "../ip-adapter/build.js";
import type { AdapterUse } from "../ip-adapter/use.js";
import { add, attention, reshape } from "../networks/layers.js";
import type { OnnxGraph, Value } from "../onnx/graph.js";
import type { ModelPart } from "../session/model-part.js";
import type { Network } from "../weights/network.js";
import type { FurtherAttention } from "./blocks.js";
import type { UnetBlock, UnetConfig } from "./build.js";

/** Transformers by the beginnings of their keys, with the number of blocks that files have keys for. */
type Transformers = readonly (readonly [key: string, depth: number])[];

const input = (blocks: readonly number[], depth: number): Transformers =>
  blocks.map((block) => [`input_blocks.${block}.1`, depth]);
const output = (blocks: readonly number[], depth: number): Transformers =>
  blocks.map((block) => [`output_blocks.${block}.1`, depth]);

/** In the order in which files number layers: those in the middle are the last. A layer's number is 2 n + 1. */
const TRANSFORMERS = {
  sd1: {
    input: input([1, 2, 4, 5, 7, 8], 1),
    output: output([3, 4, 5, 6, 7, 8, 9, 10, 11], 1),
    middle: [["middle_block.1", 1]],
  },
  sdxl: {
    input: [...input([4, 5], 2), ...input([7, 8], 10)],
    output: [...output([0, 1, 2], 10), ...output([3, 4, 5], 2)],
    middle: [["middle_block.1", 10]],
  },
} as const satisfies Record<string, Record<string, Transformers>>;

/** A transformer of a UNet: its channels, the halvings of its pictures, and its blocks. */
interface Transformer {
  readonly channels: number;
  readonly level: number;
  readonly depth: number;
}

/** A transformer that an adapter has layers for: the first of them, their number, and its place in a list of weights. */
interface Place extends Transformer {
  readonly layer: number;
  readonly layers: number;
  readonly index: number;
  readonly isMiddle: boolean;
}

/** The transformers of a UNet that an adapter has layers for, by the beginnings of their keys. */
export function placesOf(config: UnetConfig, isSdxl: boolean): ReadonlyMap<string, Place> {
  const { input, output, middle } = TRANSFORMERS[isSdxl ? "sdxl" : "sd1"];
  const indices = [...input, ...middle, ...output].map(([key]) => key);
  const transformers = transformersOf(config);
  const places = new Map<string, Place>();
  let layer = 1;
  for (const [key, layers] of [...input, ...output, ...middle]) {
    const own = transformers.get(key);
    const isMiddle = key === middle[0][0];
    if (own !== undefined) places.set(key, { ...own, layer, layers, index: indices.indexOf(key), isMiddle });
    layer += 2 * layers;
  }
  return places;
}

function transformersOf({ input, output, middle }: UnetConfig): Map<string, Transformer> {
  const found = new Map<string, Transformer>();
  const add = (key: string, { depth, channels }: UnetBlock, level: number): void => {
    if (depth > 0) found.set(key, { channels, level, depth });
  };
  const levels: number[] = [];
  for (const [index, block] of input.entries()) {
    levels.push((levels.at(-1) ?? 0) + (block.kind === "down" ? 1 : 0));
    add(`input_blocks.${index}.1`, block, levels.at(-1)!);
  }
  if (middle !== undefined) add("middle_block.1", middle, levels.at(-1)!);
  for (const [index, block] of output.entries())
    add(`output_blocks.${index}.1`, block, levels[levels.length - 1 - index]!);
  return found;
}

/** Throws value.invalid for an adapter that does not fit a UNet. */
export function requireFit({ keys, isSdxl, hasMiddle }: AdapterUse, { label, config }: ModelPart<UnetConfig>): void {
  const { contextDim, channels } = keys.config;
  const places = placesOf(config, isSdxl);
  const hasLayers = [...transformersOf(config)].every(([key, { depth, channels: own }]) => {
    const place = places.get(key);
    if (place?.isMiddle && !hasMiddle) return true;
    if (place === undefined || depth > place.layers) return false;
    return Array.from({ length: depth }, (_, block) => channels.get(place.layer + 2 * block)).every(
      (width) => width === own,
    );
  });
  if (hasLayers && contextDim === config.contextDim && isSdxl === (config.labelDim !== undefined)) return;
  throw new LatentkitError("value.invalid", `${keys.label} is for a different model family than ${label}.`);
}

/** Beyond the tokens of any picture. */
const MOST_TOKENS = 2 ** 31;

/** Names of the inputs of a use. */
export const PICTURE_INPUTS = {
  tokens: (use: number): string => `pictures_${use}`,
  factors: (use: number): string => `picture_factors_${use}`,
  mask: (use: number, level: number): string => `picture_mask_${use}_${level}`,
};

/** Adapters as a graph sees them: several uses may share a network. */
export interface AdapterLayout {
  readonly network: number;
  readonly keys: KeysConfig;
  readonly isSdxl: boolean;
  readonly hasMiddle: boolean;
}

// decisions: IPAdapters are part of the UNet's graph; The middle block does not see pictures
/**
 * Declares the inputs of adapters, and returns the attention of transformers on their pictures. For use U: `pictures_U`
 * [B, n, 1 + tokens, contextDim], the mean of a picture's tokens before these; `picture_factors_U` [transformers, 3]: of the keys, of the values, and of the values' mean
 * over the tokens of a picture; `picture_mask_U_L` [1 or B, cells or 1, 1] on level L.
 */
export function adapterAttention(
  networks: readonly Network[],
  uses: readonly AdapterLayout[],
  config: UnetConfig,
): FurtherAttention {
  const { graph } = networks[0]!;
  const all = uses.map((use, index) => {
    const { keys, isSdxl } = use;
    const places = placesOf(config, isSdxl);
    const name = PICTURE_INPUTS.tokens(index);
    const pictures = graph.input(name, "float", ["B", `n_${name}`, `tokens_${name}`, keys.contextDim]);
    const tokens = {
      flat: reshape(graph, pictures, [0, -1, keys.contextDim]),
      sides: graph.node("Shape", [pictures], { end: { int: 3 } }),
    };
    const factors = graph.input(PICTURE_INPUTS.factors(index), "float", [`transformers_${index}`, 3]);
    const levels = [...new Set([...places.values()].map(({ level }) => level))];
    const masks = new Map(
      levels.map((level) => {
        const name = PICTURE_INPUTS.mask(index, level);
        return [level, graph.input(name, "float", [`items_${name}`, `cells_${name}`, 1])];
      }),
    );
    return { ...use, places, tokens, factors, masks };
  });
  return (key, depth, query, { width, heads }) => {
    let sum: Value | undefined;
    for (const { network, keys, places, tokens, factors, masks, hasMiddle } of all) {
      const place = places.get(key);
      if (place === undefined || (place.isMiddle && !hasMiddle)) continue;
      const [allKeys, allValues] = keysAndValues(networks[network]!, keys, place.layer + 2 * depth, tokens.flat);
      const { own: ofKeys } = byPicture(graph, allKeys, tokens.sides, width);
      const { own: ofValues, mean } = byPicture(graph, allValues, tokens.sides, width);
      const [keyFactor, valueFactor, meanFactor] = [0, 1, 2].map((part) =>
        graph.node("GatherND", [factors, graph.ints([place.index, part])]),
      );
      const values = add(graph, times(graph, ofValues, valueFactor!), times(graph, mean, meanFactor!));
      const [k, v] = [times(graph, ofKeys, keyFactor!), values].map((x) => reshape(graph, x, [0, -1, width]));
      const seen = attention(graph, [query, k!, v!], { heads, width });
      const shown = times(graph, seen, masks.get(place.level)!);
      sum = sum === undefined ? shown : add(graph, sum, shown);
    }
    return sum;
  };
}

/** Rows of the mean over each picture's tokens, [B, n, 1, width], and of the tokens themselves, [B, n, tokens, width]. */
interface PictureRows {
  readonly mean: Value;
  readonly own: Value;
}

function byPicture(graph: OnnxGraph, rows: Value, sides: Value, width: number): PictureRows {
  const shape = graph.node("Concat", [sides, graph.ints([width])], { axis: { int: 0 } });
  const all = graph.node("Reshape", [rows, shape]);
  const part = (from: number, to: number): Value =>
    graph.node("Slice", [all, graph.ints([from]), graph.ints([to]), graph.ints([2])]);
  return { mean: part(0, 1), own: part(1, MOST_TOKENS) };
}

const times = (graph: OnnxGraph, a: Value, b: Value): Value => graph.node("Mul", [a, b]);
