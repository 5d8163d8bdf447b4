import { valueError } from "../base/errors.js";
import { CHECKED_LATER, checkedLater, checkOptions, type OptionRules } from "../base/options.js";
import { loadNative } from "../native/load.js";
import type { PhiloxDraw } from "../native/tensor-operations.js";
import { compute, deferNoise, deferUpload, type Side } from "./device/compute.js";
import { scale } from "./ops.js";
import { outputOf } from "./shape.js";
import { elementCount, Tensor } from "./tensor.js";

/** PyTorch's generator that a stream follows: CPU is MT19937, GPU is Philox. Both run on any machine. */
export type NoiseSource = "CPU" | "GPU";

/** The grid of the CUDA stream, by a card's name or as its number of threads. */
export type Card = keyof typeof CARD_THREADS | { readonly threads: number };

/** Streaming multiprocessors times threads each. */
const CARD_THREADS = { T4: 40_960, RTX3090: 125_952, RTX4090: 196_608, A100: 221_184, H100: 270_336 } as const;

const MAX_SEED = 2n ** 64n - 1n;

/** The stream of noise: its seed, its algorithm and, for "GPU", the card whose grid it follows. */
export interface NoiseOptions {
  /** 0 … 2^64-1; a number must be a safe integer, a string decimal. */
  seed: bigint | number | string;
  /** The generator that is followed, "CPU" or "GPU". Default: "CPU". */
  source?: NoiseSource;
  /** GPU only. Default: the H100 on every machine. */
  card?: Card;
}

const NOISE_RULES: OptionRules<NoiseOptions> = {
  seed: CHECKED_LATER,
  source: checkedLater("CPU or GPU"),
  card: CHECKED_LATER,
};

/** A stream of normals: each call continues where the last one stopped. */
export interface Generator {
  /** Draws float32 N(0, 1) values of a shape, into `out` if it is set. */
  randn(shape: readonly number[], out?: Tensor): Tensor;
}

/**
 * A seeded generator of Gaussian noise, bit for bit PyTorch's CPU stream, or its CUDA stream in portable arithmetic.
 * The CPU stream uses only the low 32 bits of the seed. Fails with value.invalid, value.out-of-range.
 */
export function createGenerator(options: NoiseOptions): Generator {
  checkOptions("createGenerator", options, NOISE_RULES);
  return generatorOf(options);
}

function generatorOf(options: NoiseOptions): Generator {
  const seed = parseSeed(options.seed);
  const source = options.source ?? "CPU";
  if (source === "CPU") {
    const native = loadNative();
    const state = new Uint8Array(native.mtStateBytes);
    native.mtSeed(state, seed);
    return {
      randn(shape, out) {
        const values = outputOf("randn", shape, out);
        native.mtRandn(state, values.data);
        return out === undefined ? deferUpload(values) : values;
      },
    };
  }
  if (source !== "GPU") throw valueError("value.invalid", "source", "CPU or GPU", source);
  return cudaStream(seed, 1, options.card);
}

/** The first draw of PyTorch's CPU stream: without a state that nothing would read again. */
function firstDraw(seed: bigint, shape: readonly number[], out: Tensor | undefined): Tensor {
  const values = outputOf("randn", shape, out);
  loadNative().mtNormals(values.data, seed);
  return out === undefined ? deferUpload(values) : values;
}

/** PyTorch's CUDA stream, each normal times k. */
function cudaStream(seed: bigint, k: number, card: Card = "H100"): Generator {
  const threads = cardThreads(card);
  let offset = 0n;
  return {
    randn(shape, out) {
      const draw = { seed, offset, threads, k };
      if (out === undefined) {
        const size = elementCount(shape);
        const values = (): Float32Array => drawValues(draw, [size]).values.data;
        const noise = deferNoise(shape, size, { draw, values });
        if (noise !== undefined) {
          offset = loadNative().philoxSkip(size, offset, threads);
          return noise;
        }
      }
      const { values, next } = drawValues(draw, shape, out);
      offset = next;
      return values;
    },
  };
}

/** Draws values on the side that `compute` chooses; `next` is the offset behind them. */
function drawValues(draw: PhiloxDraw, shape: readonly number[], out?: Tensor): { values: Tensor; next: bigint } {
  const { seed, offset, threads, k } = draw;
  let next = offset;
  const work = (at: Side): Tensor => {
    const values = at.output("randn", shape, out);
    next = at.ops.philoxRandn(at.out(values), seed, offset, threads, k);
    return values;
  };
  return { values: compute(elementCount(shape), work, out), next };
}

/** Options of `randn`. `batchIndex` draws the noise of these entries of a batch, as ComfyUI's batch_index does. */
export interface RandnOptions extends NoiseOptions {
  /** Draws that the entries of the batch take, in their order. Default: as many new draws. */
  batchIndex?: readonly number[];
  /** Tensor of the same shape that receives the values. Default: a new one. */
  out?: Tensor;
}

const RANDN_RULES: OptionRules<RandnOptions> = {
  ...NOISE_RULES,
  batchIndex: CHECKED_LATER,
  out: CHECKED_LATER,
};

/**
 * Seeded normals of a shape. With `batchIndex` (one entry per item of shape[0]) item i is the batchIndex[i]-th draw of
 * [1, …shape.slice(1)] of one stream; equal indices share a draw.
 */
export function randn(shape: readonly number[], options: RandnOptions): Tensor {
  checkOptions("randn", options, RANDN_RULES);
  const { seed, source = "CPU", batchIndex, out } = options;
  if (batchIndex === undefined) {
    return source === "CPU" ? firstDraw(parseSeed(seed), shape, out) : generatorOf(options).randn(shape, out);
  }
  checkBatchIndex(shape, batchIndex);
  const item = [1, ...shape.slice(1)];
  const itemSize = elementCount(item);
  const positions = new Map<number, number[]>();
  for (const [position, index] of batchIndex.entries()) {
    const same = positions.get(index);
    if (same === undefined) positions.set(index, [position]);
    else same.push(position);
  }
  const last = largestOf(batchIndex);
  return compute(
    elementCount(shape),
    (at) => {
      const generator = generatorOf(options);
      const out = at.output("randn", shape, options.out);
      for (let index = 0; index <= last; index++) {
        const draw = generator.randn(item);
        for (const position of positions.get(index) ?? []) at.copy(out, draw, position * itemSize);
      }
      return out;
    },
    options.out,
  );
}

/** randn and scale by k, bit for bit, for the GPU's stream in one pass. Writes only `out` and new memory. */
export function scaledRandn(shape: readonly number[], k: number, options: Omit<RandnOptions, "batchIndex">): Tensor {
  const { seed, source, card, out } = options;
  if (source === "GPU") return cudaStream(parseSeed(seed), k, card).randn(shape, out);
  const values = randn(shape, options);
  return scale(values, k, values);
}

/** Reads a seed of any accepted form. Fails with value.invalid and value.out-of-range. */
function parseSeed(seed: unknown): bigint {
  let value: bigint | undefined;
  if (typeof seed === "bigint") value = seed;
  else if (typeof seed === "number" && Number.isSafeInteger(seed)) value = BigInt(seed);
  else if (typeof seed === "string" && /^\s*[+-]?\d{1,40}\s*$/.test(seed))
    value = BigInt(seed.trim().replace(/^\+/, ""));
  if (value === undefined) {
    const expected = `a whole number from 0 to ${MAX_SEED} as a bigint, a safe integer or a decimal string`;
    throw valueError("value.invalid", "seed", expected, seed);
  }
  if (value < 0n || value > MAX_SEED) throw valueError("value.out-of-range", "seed", `0 to ${MAX_SEED}`, value);
  return value;
}

/** Largest index of a batch: every draw before it has to be drawn. */
const MAX_BATCH_INDEX = 65_535;

function checkBatchIndex(shape: readonly number[], batchIndex: readonly number[]): void {
  if (!Array.isArray(batchIndex) || batchIndex.length !== shape[0]) {
    const expected = `one index for each of the ${shape[0]} items of the batch`;
    throw valueError("value.invalid", "batchIndex", expected, batchIndex);
  }
  for (const index of batchIndex) {
    if (!Number.isInteger(index) || index < 0 || index > MAX_BATCH_INDEX)
      throw valueError("value.out-of-range", "batchIndex", `whole numbers from 0 to ${MAX_BATCH_INDEX}`, index);
  }
  // all draws up to the last: as many values as one tensor may have
  elementCount([largestOf(batchIndex) + 1, ...shape.slice(1)]);
}

const largestOf = (batchIndex: readonly number[]): number => batchIndex.reduce((a, b) => Math.max(a, b), -1);

function cardThreads(card: Card): number {
  if (typeof card === "string" && Object.hasOwn(CARD_THREADS, card)) return CARD_THREADS[card];
  const threads = typeof card === "object" && card !== null ? card.threads : undefined;
  if (typeof threads === "number" && threads > 0 && threads % 256 === 0 && threads <= 2 ** 31) return threads;
  const expected = `${Object.keys(CARD_THREADS).join(", ")} or { threads } with a multiple of 256`;
  throw valueError("value.invalid", "card", expected, threads ?? card);
}

const SIZE = 624;
const SHIFT = 397;

/**
 * Float32 values of a shape, spread evenly over [0, 1): PyTorch's torch.rand on a CPU generator, which takes the low 24 bits
 * of each word of MT19937. Of the seed the low 32 bits count. Source: Matsumoto and Nishimura 1998, "Mersenne Twister".
 */
export function uniforms(shape: readonly number[], seed: number): Tensor {
  const out = Tensor.unfilled(shape);
  const state = new Uint32Array(SIZE);
  state[0] = seed;
  for (let i = 1; i < SIZE; i++) {
    const before = state[i - 1]!;
    state[i] = Math.imul(1812433253, before ^ (before >>> 30)) + i;
  }
  for (let i = 0; i < out.size; i++) {
    const at = i % SIZE;
    const mixed = (state[at]! & 0x80000000) | (state[(at + 1) % SIZE]! & 0x7fffffff);
    state[at] = state[(at + SHIFT) % SIZE]! ^ (mixed >>> 1) ^ (mixed & 1 ? 0x9908b0df : 0);
    out.data[i] = (tempered(state[at]!) & 0xffffff) / 2 ** 24;
  }
  return out;
}

function tempered(word: number): number {
  let y = word ^ (word >>> 11);
  y ^= (y << 7) & 0x9d2c5680;
  y ^= (y << 15) & 0xefc60000;
  return y ^ (y >>> 18);
}
