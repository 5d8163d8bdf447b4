import { cycled, joined, narrowed, repeated, withLast } from "../../../tensor/parts.js";
import { resizeLatent } from "../../../tensor/resize.js";
import { borderAt } from "../../../tensor/sampling/noise-level.js";
import { Tensor } from "../../../tensor/tensor.js";
import type { Conditioning, SamplingRun } from "../../types.js";
import type { AdapterUse } from "../ip-adapter/use.js";
import type { UnetConfig } from "./build.js";
import { PICTURE_INPUTS, placesOf } from "./image-adapters.js";

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
      feeds[PICTURE_INPUTS.tokens(index)] = known(`${sides} ${batch}`, () => rowsOf(use, sides, batch));
      const isOn = this.#counts(use, sigma);
      feeds[PICTURE_INPUTS.factors(index)] = known(`${isOn}`, () => factorsOf(use, this.#config, isOn));
      for (const level of new Set([...placesOf(this.#config, use.isSdxl).values()].map((place) => place.level)))
        feeds[PICTURE_INPUTS.mask(index, level)] = known(`${rows} ${columns} ${items} ${batch} ${level}`, () =>
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

/** Tokens of all rows of a call, [B, n, 1 + tokens, contextDim]: `batch` latents for each entry, of the negative side or not. */
function rowsOf(use: AdapterUse, sides: readonly boolean[], batch: number): Tensor {
  const { tokens, negativeTokens, isPerLatent, isSwapped } = use;
  const own = withMeans(tokens);
  const [count, length, width] = own.shape as [number, number, number];
  const positive = isSwapped ? Tensor.zeros(own.shape) : own;
  const negative = isSwapped ? own : withMeans(negativeTokens);
  const parts = sides.map((isNegative) => {
    const side = isNegative ? negative : positive;
    if (!isPerLatent) return repeated(side.reshape([1, count, length, width]), batch);
    return withLast(side, batch).reshape([batch, 1, length, width]);
  });
  return joined(parts, 0);
}

// not in the graph, where threads share a sum
/** Tokens [n, tokens, C] with the mean of each picture's before them. */
function withMeans(tokens: Tensor): Tensor {
  const [count, length, width] = tokens.shape as [number, number, number];
  const means = Tensor.zeros([count, 1, width]);
  for (let i = 0; i < means.size; i++) {
    const first = Math.floor(i / width) * length * width + (i % width);
    let sum = 0;
    for (let token = 0; token < length; token++) sum += tokens.data[first + token * width]!;
    means.data[i] = sum / length;
  }
  return joined([means, tokens], 1);
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
