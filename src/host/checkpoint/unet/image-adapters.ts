import { LatentkitError } from "../../../base/errors.js";
import { cycled, joined, narrowed, repeated } from "../../../tensor/parts.js";
import { resizeLatent } from "../../../tensor/resize.js";
import { borderAt } from "../../../tensor/sampling/noise-level.js";
import { Tensor } from "../../../tensor/tensor.js";
import type { Conditioning, SamplingRun } from "../../types.js";
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

/** The transformers of a UNet that an adapter has layers for, by the beginnings of their keys. @internal */
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

/** Names of a use's inputs. */
const NAMES = {
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

/**
 * Declares the inputs of adapters, and returns the attention of transformers on their pictures. For use U: `pictures_U`
 * [B, n, tokens, contextDim]; `picture_factors_U` [transformers, 3]: of the keys, of the values, and of the values' mean
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
    const name = NAMES.tokens(index);
    const pictures = graph.input(name, "float", ["B", `n_${name}`, `tokens_${name}`, keys.contextDim]);
    const tokens = {
      flat: reshape(graph, pictures, [0, -1, keys.contextDim]),
      sides: graph.node("Shape", [pictures], { end: { int: 3 } }),
    };
    const factors = graph.input(NAMES.factors(index), "float", [`transformers_${index}`, 3]);
    const levels = [...new Set([...places.values()].map(({ level }) => level))];
    const masks = new Map(
      levels.map((level) => {
        const name = NAMES.mask(index, level);
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
      const [ofKeys, ofValues] = keysAndValues(networks[network]!, keys, place.layer + 2 * depth, tokens.flat);
      const [keyFactor, valueFactor, meanFactor] = [0, 1, 2].map((part) =>
        graph.node("GatherND", [factors, graph.ints([place.index, part])]),
      );
      const byPicture = graph.node("Reshape", [
        ofValues,
        graph.node("Concat", [tokens.sides, graph.ints([width])], { axis: { int: 0 } }),
      ]);
      const mean = times(graph, graph.node("ReduceMean", [byPicture, graph.ints([2])]), meanFactor!);
      const values = reshape(graph, add(graph, times(graph, byPicture, valueFactor!), mean), [0, -1, width]);
      const seen = attention(graph, [query, times(graph, ofKeys, keyFactor!), values], { heads, width });
      const shown = times(graph, seen, masks.get(place.level)!);
      sum = sum === undefined ? shown : add(graph, sum, shown);
    }
    return sum;
  };
}

const times = (graph: OnnxGraph, a: Value, b: Value): Value => graph.node("Mul", [a, b]);

/** Entries of one call of a UNet, and the sides of its latents. */
interface AdaptedCall {
  readonly x: Tensor;
  readonly entries: Conditioning;
  readonly sigma: number;
}

/** Image adapters of a run. */
export class RunAdapters {
  readonly #uses: readonly AdapterUse[];
  readonly #run: SamplingRun;
  readonly #config: UnetConfig;
  /** By use, rows of a call and its sides: the same tensors at each step. */
  readonly #inputs = new Map<string, Tensor>();

  constructor(uses: readonly AdapterUse[], config: UnetConfig, run: SamplingRun) {
    this.#uses = uses;
    this.#config = config;
    this.#run = run;
  }

  /** Inputs of the UNet for a call, all of which stay the same at other noise levels of a range. */
  of({ x, entries, sigma }: AdaptedCall): Readonly<Record<string, Tensor>> {
    const feeds: Record<string, Tensor> = {};
    const [items, , rows, columns] = x.shape as [number, number, number, number];
    const batch = items / entries.length;
    const sides = entries.map((entry) => this.#run.negative.includes(entry));
    for (const [index, use] of this.#uses.entries()) {
      const known = (what: string, make: () => Tensor): Tensor => {
        const key = `${index} ${what}`;
        const tensor = this.#inputs.get(key) ?? make();
        this.#inputs.set(key, tensor);
        return tensor;
      };
      feeds[NAMES.tokens(index)] = known(`${sides} ${batch}`, () => rowsOf(use, sides, batch));
      const isOn = this.#counts(use, sigma);
      feeds[NAMES.factors(index)] = known(`${isOn}`, () => factorsOf(use, this.#config, isOn));
      for (const level of new Set([...placesOf(this.#config, use.isSdxl).values()].map((place) => place.level)))
        feeds[NAMES.mask(index, level)] = known(`${rows} ${columns} ${items} ${batch} ${level}`, () =>
          maskOf(use, [rows, columns], level, { batch, entries: entries.length }),
        );
    }
    return feeds;
  }

  #counts({ start, end }: AdapterUse, sigma: number): boolean {
    const { sampling } = this.#run;
    return sigma <= borderAt(sampling, start) && sigma >= borderAt(sampling, end);
  }
}

/** Tokens of all rows of a call, [B, n, tokens, contextDim]: `batch` latents for each entry, of the negative side or not. */
function rowsOf(use: AdapterUse, sides: readonly boolean[], batch: number): Tensor {
  const { tokens, negativeTokens, isPerLatent, isSwapped } = use;
  const [count, length, width] = tokens.shape as [number, number, number];
  const positive = isSwapped ? Tensor.zeros(tokens.shape) : tokens;
  const negative = isSwapped ? tokens : negativeTokens;
  const parts = sides.map((isNegative) => {
    const own = isNegative ? negative : positive;
    if (!isPerLatent) return repeated(own.reshape([1, count, length, width]), batch);
    return withLast(own, batch).reshape([batch, 1, length, width]);
  });
  return joined(parts, 0);
}

/** The first items of a batch; the last one repeats if there are too few. */
function withLast(x: Tensor, count: number): Tensor {
  const length = x.shape[0]!;
  if (count <= length) return narrowed(x, 0, 0, count);
  return joined([x, repeated(narrowed(x, 0, length - 1, 1), count - length)], 0);
}

/** Width at which the penalty of channels leaves a weight as it is. */
const WIDTH_OF_PENALTY = 1280;

/** Factors that leave nothing of a picture. */
const OFF = [0, 0, 0];

/** Factors of keys, values and the values' mean for a weight, and for one with the penalty of channels. */
function scaledBy(scaling: AdapterUse["scaling"], weight: number, penalised: number): readonly number[] {
  switch (scaling) {
    case "V only":
      return [1, weight, 0];
    case "K+V":
      return [weight, weight, 0];
    case "K+V w/ C penalty":
      return [penalised, penalised, 0];
    case "K+mean(V) w/ C penalty":
      return [penalised, 1, penalised - 1];
  }
}

/** Factors of keys, values and the values' mean at each transformer, [transformers, 3]; zeros if the use is off. */
function factorsOf({ weights, scaling, isSdxl }: AdapterUse, config: UnetConfig, isOn: boolean): Tensor {
  const channels = new Map([...placesOf(config, isSdxl).values()].map((place) => [place.index, place.channels]));
  const factors = weights.flatMap((weight, index) =>
    isOn && weight !== 0 ? scaledBy(scaling, weight, (weight * (channels.get(index) ?? 0)) / WIDTH_OF_PENALTY) : OFF,
  );
  return Tensor.from(factors, [weights.length, 3]);
}

/** Rows of a call: latents of an entry, and entries. */
interface CallRows {
  readonly batch: number;
  readonly entries: number;
}

/** A mask over the tokens of a level, [1 or B, tokens, 1]; one number without a mask. */
function maskOf(
  { mask, maskMethod }: AdapterUse,
  [rows, columns]: readonly [number, number],
  level: number,
  { batch, entries }: CallRows,
): Tensor {
  if (mask === undefined) return Tensor.full([1, 1, 1], 1);
  let [down, across] = [rows, columns];
  for (let i = 0; i < level; i++) [down, across] = [Math.ceil(down / 2), Math.ceil(across / 2)];
  const tokens = down * across;
  // the reference knows only the number of tokens
  let height = Math.trunc(rows / Math.sqrt((rows * columns) / tokens));
  if (tokens % height !== 0) height++;
  const width = Math.floor(tokens / height);
  const [count, inHeight, inWidth] = mask.shape as [number, number, number];
  const planes = mask.reshape([count, 1, inHeight, inWidth]);
  const sized = resizeLatent(planes, { method: maskMethod, height, width }).reshape([count, height * width, 1]);
  const fitted = withTokens(sized, tokens);
  return count === 1 ? fitted : cycled(withLast(fitted, batch), batch * entries);
}

/** Values [n, length, 1] with zeros before and after, or without their ends. */
function withTokens(x: Tensor, tokens: number): Tensor {
  const [count, length] = x.shape as [number, number];
  if (length === tokens) return x;
  if (length > tokens) return narrowed(x, 1, Math.floor((length - tokens) / 2), tokens);
  const before = Math.floor((tokens - length) / 2);
  const zeros = (size: number): Tensor => Tensor.zeros([count, size, 1]);
  return joined([zeros(before), x, zeros(tokens - length - before)], 1);
}
