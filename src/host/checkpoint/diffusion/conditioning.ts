import { describe, LatentkitError } from "../../../base/errors.js";
import { cos, square } from "../../../native/elementary.js";
import { weightedSum } from "../../../tensor/ops.js";
import { cropped, cycled, joined } from "../../../tensor/parts.js";
import { createGenerator } from "../../../tensor/random.js";
import { resizeLatent } from "../../../tensor/resize.js";
import { roundHalfEven } from "../../../tensor/rounding.js";
import { Tensor } from "../../../tensor/tensor.js";
import { clipped, readEntries } from "../../sampling/conditioning.js";
import { intoModel } from "../../sampling/latent-space.js";
import type { Conditioning, SamplingRun } from "../../types.js";
import { EncodedPicture } from "../clip-vision/model.js";
import { sinusoids } from "../networks/sinusoids.js";

/** Channels of a grey picture's latent in the model's units, used if nothing is hidden. */
const GREY = [0.8223, -0.6876, 0.6364, 0.138];

/**
 * The five channels that an inpainting network takes beside the noisy latent: the mask, 1 where it repaints, and the
 * latent with that part hidden. They come from the entry's `concat_mask` and `concat_latent_image` (in the VAE's units),
 * else from the run's own mask and latent; without any mask everything is repainted.
 */
export function inpaintChannels(entry: Conditioning[number], run: SamplingRun): Tensor {
  const [batch, channels, rows, columns] = run.latent.shape as [number, number, number, number];
  const mask = optionalTensor(entry, "concat_mask") ?? run.mask;
  const latent = optionalTensor(entry, "concat_latent_image");
  const sized = (x: Tensor): Tensor => cycled(resizedTo(x, rows, columns), batch);
  if (mask === undefined) return joined([Tensor.full([batch, 1, rows, columns], 1), grey(run.latent)], 1);
  const hidden = latent === undefined ? run.latent : intoModel(latent, run.sampling);
  if (hidden.shape[1] !== channels) {
    const expected = `concat_latent_image with ${channels} channels`;
    throw new LatentkitError("tensor.bad-shape", `conditioning: expected ${expected}, received ${describe(hidden)}.`);
  }
  return joined([rounded(sized(planesOf(mask))), sized(hidden)], 1);
}

/** The part of the channels that lies in the area of an entry, for a model that gets only that part of the latent. */
export function inArea(channels: Tensor, entry: Conditioning[number], { sampling, latent }: SamplingRun): Tensor {
  const [, , rows, columns] = latent.shape as [number, number, number, number];
  const [whole] = readEntries([entry], sampling, [rows, columns]);
  const { y, x, height, width } = clipped(whole?.area, rows, columns);
  return cropped(channels, 2, { top: y, left: x, height, width });
}

/** A tensor among the options of a conditioning; undefined if it is absent. Fails with tensor.bad-shape. */
export function optionalTensor([, options]: Conditioning[number], name: string): Tensor | undefined {
  const value: unknown = options[name];
  if (value === undefined || value === null) return undefined;
  if (value instanceof Tensor && value.size > 0 && value.shape.length >= 3) return value;
  throw new LatentkitError(
    "tensor.bad-shape",
    `conditioning, ${name}: expected a tensor, received ${describe(value)}.`,
  );
}

/** A mask of any rank as planes [n, 1, h, w]. */
export function planesOf(mask: Tensor): Tensor {
  const [height = 0, width = 0] = mask.shape.slice(-2);
  return mask.reshape([mask.size / (height * width), 1, height, width]);
}

/** Planes or latents at another size. */
export const resizedTo = (x: Tensor, height: number, width: number): Tensor =>
  x.shape[2] === height && x.shape[3] === width
    ? x
    : resizeLatent(x, { width, height, method: "bilinear", crop: "center" });

function rounded(x: Tensor): Tensor {
  const out = Tensor.unfilled(x.shape);
  const [from, to] = [x.data, out.data];
  for (let i = 0; i < to.length; i++) to[i] = roundHalfEven(from[i]!);
  return out;
}

function grey({ shape }: Tensor): Tensor {
  const out = Tensor.zeros(shape);
  const [, channels, rows, columns] = shape as [number, number, number, number];
  const plane = rows * columns;
  for (let i = 0; i < out.size; i += plane) out.data.fill(GREY[(i / plane) % channels] ?? 0, i, i + plane);
  return out;
}

/** Pooled text of an entry [n, width], zeros if it has none. Fails with value.invalid for another width. */
export function pooledText([, { pooled_output: pooled }]: Conditioning[number], width: number): Tensor {
  if (pooled === undefined || pooled === null) return Tensor.zeros([1, width]);
  if (pooled instanceof Tensor && pooled.shape.length === 2 && pooled.shape[0]! > 0 && pooled.shape[1] === width)
    return pooled;
  throw pooledError(width, describe(pooled));
}

/** Error of a pooled text of another width. */
export function pooledError(width: number | "width", received: string): LatentkitError {
  const expected = `pooled_output [n, ${width}], as the model's text encoders make it`;
  return new LatentkitError("value.invalid", `conditioning: expected ${expected}, received ${received}.`);
}

/** Width of the embedding of one number. */
const WIDTH = 256;
/** Pixels along a side of a latent's cell. */
const CELL = 8;
/** Scores that the refiner was trained to move towards and away from. */
const AESTHETIC_SCORES = { positive: 6, negative: 2.5 };

/** Everything that the label of an entry depends on. */
export interface LabelSource {
  readonly kind: "sdxl" | "sdxl-refiner";
  /** Rows and columns of the run's latent. */
  readonly cells: readonly [number, number];
  readonly isNegative: boolean;
  /** Seed of the run; 0 if absent. */
  readonly seed?: bigint;
}

/** The label of an SDXL network for one entry. */
interface SizeLabel {
  /** Pooled text, [n, width]. */
  readonly pooled: Tensor;
  /** Sizes that its prompt names, height first: 6, for the refiner 5. */
  readonly numbers: readonly number[];
}

/**
 * The label of an SDXL network for one entry: its pooled text, or a picture that stands for it, and sizes; `width` is that of both in one vector, if it
 * is known. Podell et al. 2023, "SDXL", section 2.2. Fails with value.invalid.
 */
export function sizeLabel(entry: Conditioning[number], source: LabelSource, width?: number): SizeLabel {
  const [, options] = entry;
  const numbers = source.kind === "sdxl" ? baseNumbers(options, source) : refinerNumbers(options, source);
  const pooledWidth = width === undefined ? undefined : width - numbers.length * WIDTH;
  const pooled = pictureLabel(entry, source.seed) ?? options.pooled_output;
  const isPooled = pooled instanceof Tensor && pooled.shape.length === 2 && pooled.shape[0]! > 0;
  if (!isPooled || pooled.shape[1] !== (pooledWidth ?? pooled.shape[1]))
    throw pooledError(pooledWidth ?? "width", describe(pooled));
  return { pooled, numbers };
}

/** The label as one vector for each pooled text, in which each size is embedded: [n, width]. */
export function labelVectors({ pooled, numbers }: SizeLabel): Tensor {
  const sizes = Float32Array.from(numbers.flatMap((number) => sinusoids(number, WIDTH)));
  const [count, pooledWidth] = pooled.shape as [number, number];
  const width = pooledWidth + sizes.length;
  const vectors = Tensor.unfilled([count, width]);
  for (let item = 0; item < count; item++) {
    vectors.data.set(pooled.data.subarray(item * pooledWidth, (item + 1) * pooledWidth), item * width);
    vectors.data.set(sizes, item * width + pooledWidth);
  }
  return vectors;
}

function baseNumbers(options: Record<string, unknown>, { cells }: LabelSource): number[] {
  const [height, width] = sizeOf(options, cells);
  return [
    height,
    width,
    numberIn(options, "crop_h", 0),
    numberIn(options, "crop_w", 0),
    numberIn(options, "target_height", height),
    numberIn(options, "target_width", width),
  ];
}

function refinerNumbers(options: Record<string, unknown>, { cells, isNegative }: LabelSource): number[] {
  const score = isNegative ? AESTHETIC_SCORES.negative : AESTHETIC_SCORES.positive;
  return [
    ...sizeOf(options, cells),
    numberIn(options, "crop_h", 0),
    numberIn(options, "crop_w", 0),
    numberIn(options, "aesthetic_score", score),
  ];
}

const sizeOf = (options: Record<string, unknown>, [rows, columns]: readonly [number, number]): [number, number] => [
  numberIn(options, "height", rows * CELL),
  numberIn(options, "width", columns * CELL),
];

function numberIn(options: Record<string, unknown>, name: string, absent: number): number {
  const value = options[name] ?? absent;
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw new LatentkitError("value.invalid", `conditioning, ${name}: expected a number, received ${describe(value)}.`);
}

/** An encoded picture in the options of a conditioning, as unCLIPConditioning adds it. */
interface AddedPicture {
  readonly clip_vision_output: unknown;
  readonly strength: number;
  readonly noise_augmentation: number;
}

/** Levels of the noise that is added to an embedding. */
const LEVELS = 1000;
/** Bound of a step's loss of signal. */
const MOST_LOSS = 0.999;
/** Distance of the noise's seed from that of the run. */
const SEED_DISTANCE = 10n;

/**
 * Embedding [1, width] of the picture of an entry, with noise, which stands for its pooled text; undefined without one.
 * Throws value.invalid for several pictures and those of other hosts. @internal
 */
export function pictureLabel([, options]: Conditioning[number], seed = 0n): Tensor | undefined {
  const added = options.unclip_conditioning;
  if (!Array.isArray(added) || added.length === 0) return undefined;
  const [{ clip_vision_output: picture, strength, noise_augmentation }] = added as [AddedPicture];
  if (added.length > 1 || !(picture instanceof EncodedPicture) || picture.embedding.shape[0] !== 1) {
    const expected = "one picture, encoded by CLIPVisionEncode of the same host";
    const received = added.length > 1 ? `${added.length} pictures` : describe(picture);
    throw new LatentkitError("value.invalid", `unCLIPConditioning: expected ${expected}, received ${received}.`);
  }
  const { embedding } = picture;
  const signal = signalAt(roundHalfEven((LEVELS - 1) * noise_augmentation));
  const noise = createGenerator({ seed: BigInt.asUintN(64, seed - SEED_DISTANCE) }).randn(embedding.shape);
  return weightedSum([
    [Math.sqrt(signal) * strength, embedding],
    [Math.sqrt(1 - signal) * strength, noise],
  ]);
}

/** Share of the signal's variance after a level. Source: the cosine schedule of Nichol and Dhariwal 2021. */
function signalAt(level: number): number {
  const at = (time: number): number => square(cos((((time + 0.008) / 1.008) * Math.PI) / 2));
  let signal = 1;
  for (let i = 0; i <= level; i++) signal *= 1 - Math.min(1 - at((i + 1) / LEVELS) / at(i / LEVELS), MOST_LOSS);
  return signal;
}
