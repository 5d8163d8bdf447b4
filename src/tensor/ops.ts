import { LatentkitError } from "../base/errors.js";
import { loadNative } from "../native/load.js";
import { DeferredImage, releaseMemory } from "./deferred-values.js";
import { CPU_SIDE, compute, type Memory, produce, type Side } from "./device/compute.js";
import { takeMemory } from "./memory-pool.js";
import { itemValues } from "./parts.js";
import { fourSides, maskSides, requireSameShape } from "./shape.js";
import { badShape, elementCount, Tensor } from "./tensor.js";

// `compute` chooses the side that computes an operation and holds its result; the bits are the same on every side.
// `out` must have the result's shape; the operation writes into it and returns it. It may be an operand of that shape, but
// not a mask, composite's source, nor an operand of resizeBilinear, channelToMask or planesToImage. After a failure its
// content is undefined.

/** x * k in float32; k is rounded to float32 first. */
export function scale(x: Tensor, k: number, out?: Tensor): Tensor {
  return produce("scale", x, x.size, out, (at, to) => at.ops.scale(to, at.in(x), k), x);
}

/** x + y * k, two roundings. */
export function axpy(x: Tensor, y: Tensor, k: number, out?: Tensor): Tensor {
  requireSameShape("axpy", x, y);
  return produce("axpy", x, x.size, out, (at, to) => at.ops.axpy(to, at.in(x), at.in(y), k), x, y);
}

/** (x + y) / 2 */
export function average(x: Tensor, y: Tensor, out?: Tensor): Tensor {
  requireSameShape("average", x, y);
  return produce("average", x, x.size, out, (at, to) => at.ops.average(to, at.in(x), at.in(y)), x, y);
}

/** a + (b - a) * t */
export function lerp(a: Tensor, b: Tensor, t: number, out?: Tensor): Tensor {
  requireSameShape("lerp", a, b);
  return produce("lerp", a, a.size, out, (at, to) => at.ops.lerp(to, at.in(a), at.in(b), t), a, b);
}

/** A tensor and its coefficient, a double. */
export type Term = readonly [coefficient: number, x: Tensor];

/** Number of terms of a weighted sum at most. */
const MAX_TERMS = 8;

// decisions: A step is one sum in float32
/** Sum of coefficient * x over 1 to 8 terms of one shape, in float32 by fused products; coefficients keep 48 bits. */
export function weightedSum(terms: readonly Term[], out?: Tensor): Tensor {
  const like = firstOf("weightedSum", terms);
  let onDevice: Tensor | undefined;
  for (const [, x] of terms) {
    requireSameShape("weightedSum", like, x);
    if (x.onDevice !== undefined) onDevice ??= x;
  }
  const sum = (at: Side, to: Memory): void => {
    const flat: (number | Memory)[] = [];
    for (const [coefficient, x] of terms) flat.push(coefficient, at.in(x));
    at.ops.weightedSum(to, ...flat);
  };
  return produce("weightedSum", like, like.size, out, sum, onDevice);
}

/** The same sum `times` times as one batch [times * B, …], on the CPU; a term may lie at the beginning of `out`. */
export function repeatedSum(terms: readonly Term[], times: number, out?: Tensor): Tensor {
  const like = firstOf("repeatedSum", terms);
  const sum = out ?? unfilledBatch(like, times);
  const flat: (number | Float32Array)[] = [];
  for (const [coefficient, x] of terms) {
    requireSameShape("repeatedSum", like, x);
    flat.push(coefficient, x.data);
  }
  loadNative().weightedSum(sum.data, ...flat);
  return sum;
}

function unfilledBatch({ shape: [items, ...sides] }: Tensor, times: number): Tensor {
  if (items !== undefined) return Tensor.unfilled([times * items, ...sides]);
  throw badShape("repeatedSum", "a batch", "shape []");
}

function firstOf(operation: string, terms: readonly Term[]): Tensor {
  const [first] = terms;
  if (first !== undefined && terms.length <= MAX_TERMS) return first[1];
  const message = `${operation}: expected 1 to ${MAX_TERMS} terms, received ${terms.length}.`;
  throw new LatentkitError("value.invalid", message);
}

/** Unbiased standard deviation of all elements (n - 1), as float32; NaN for fewer than two. */
export function std(x: Tensor): number {
  return compute(x.size, (at) => at.ops.std(at.in(x)), x);
}

/**
 * The error norm of an adaptive step: the root of the mean of ((low - high) / max(atol, rtol * max(|low|, |previous|)))^2,
 * in double; NaN for no elements.
 */
export function scaledError(low: Tensor, high: Tensor, previous: Tensor, atol: number, rtol: number): number {
  requireSameShape("scaledError", low, high);
  requireSameShape("scaledError", low, previous);
  const norm = (at: Side): number => at.ops.scaledError(at.in(low), at.in(high), at.in(previous), atol, rtol);
  return compute(low.size, norm, low, high, previous);
}

/** Resizes the last two axes: bilinear, align_corners false, no antialias, edges clamped. */
export function resizeBilinear(x: Tensor, height: number, width: number, out?: Tensor): Tensor {
  const [planes, inHeight, inWidth] = maskSides("resizeBilinear", x);
  const shape = [...x.shape.slice(0, -2), height, width];
  return produce(
    "resizeBilinear",
    shape,
    planes * height * width,
    out,
    (at, to) => at.ops.resizeBilinear(to, at.in(x), planes, inHeight, inWidth, height, width),
    x,
  );
}

/** m * a + (1 - m) * b over [B, C, H, W]; a mask of fewer items repeats, and is resized to H x W. */
export function maskedBlend(a: Tensor, b: Tensor, mask: Tensor, out?: Tensor): Tensor {
  requireSameShape("maskedBlend", a, b);
  const shape = fourSides("maskedBlend", a);
  const [batch, channels, height, width] = shape;
  const maskShape = maskSides("maskedBlend", mask);
  const [maskBatch, maskHeight, maskWidth] = maskShape;
  const fits = maskHeight === height && maskWidth === width;
  const plane = height * width;
  return produce(
    "maskedBlend",
    a,
    a.size,
    out,
    (at, to) => {
      if (!fits && at.resizedBlend !== undefined) {
        at.resizedBlend(to, at.in(a), at.in(b), at.in(mask), shape, maskShape);
        return;
      }
      const sized = fits ? mask : resizeBilinear(mask, height, width);
      at.ops.maskedBlend(to, at.in(a), at.in(b), at.in(sized), batch, channels, plane, maskBatch);
    },
    a,
    b,
    mask,
  );
}

/**
 * Pastes source at (x, y) into a copy of destination, both [B, C, H, W], cropped to the overlap. Source batches repeat or
 * are cut, its channels must match or be 1; covered elements are the source's exactly. mask [B, source H, source W]:
 * m * source + (1 - m) * destination.
 */
export function composite(destination: Tensor, source: Tensor, x = 0, y = 0, mask?: Tensor, out?: Tensor): Tensor {
  const shape = fourSides("composite destination", destination);
  const sourceShape = fourSides("composite source", source);
  if (sourceShape[1] !== shape[1] && sourceShape[1] !== 1)
    throw badShape("composite", `a source with ${shape[1]} channels or 1`, `${sourceShape[1]}`);
  if (sourceShape[0] === 0 && shape[0] > 0) throw badShape("composite", "a source with at least one item", "none");
  const maskShape = mask === undefined ? undefined : maskSides("composite", mask);
  if (maskShape !== undefined && (maskShape[1] !== sourceShape[2] || maskShape[2] !== sourceShape[3])) {
    const expected = `a mask of the source's ${sourceShape[2]} x ${sourceShape[3]}`;
    throw badShape("composite", expected, `${maskShape[1]} x ${maskShape[2]}`);
  }
  return produce(
    "composite",
    destination,
    destination.size,
    out,
    (at, to, result) => {
      at.copy(result, destination, 0);
      const through = mask === undefined ? undefined : at.in(mask);
      at.ops.composite(to, shape, at.in(source), sourceShape, x, y, through, maskShape?.[0]);
    },
    destination,
    source,
    mask,
  );
}

export interface InjectNoiseOptions {
  strength: number;
  average?: boolean;
  normalize?: boolean;
  /** [B, H, W]; resized to the latent; at most as many as the batch, fewer repeat. */
  mask?: Tensor;
  /** Above 0: mixes `random`, of base's shape, in. */
  mix?: number;
  random?: Tensor;
}

/** Injects noise into a latent: add or average, normalise, mask, mix, in that order. Fails if the deviation is 0. */
export function injectNoise(base: Tensor, noise: Tensor, options: InjectNoiseOptions, out?: Tensor): Tensor {
  requireSameShape("injectNoise", base, noise);
  const { mask, random, mix = 0 } = options;
  if (random !== undefined) requireSameShape("injectNoise random", base, random);
  const shape = mask === undefined ? undefined : fourSides("injectNoise", base);
  const maskShape = mask === undefined ? undefined : maskSides("injectNoise", mask);
  const { strength, average = false, normalize = false } = options;
  const inject = (at: Side, to: Memory): void => {
    const drawn = random === undefined ? undefined : at.drawOf(random);
    at.ops.injectNoise(to, at.in(base), at.in(noise), {
      strength,
      average,
      normalize,
      shape,
      mask: mask === undefined ? undefined : at.in(mask),
      maskShape,
      mix,
      random: random === undefined || drawn !== undefined ? undefined : at.in(random),
      drawn,
    });
  };
  try {
    return produce("injectNoise", base, base.size, out, inject, base, noise, random, mask);
  } catch (error) {
    if ((error as { status?: string }).status !== "zero-deviation") throw error;
    const message = "injectNoise: cannot normalize, all values are equal (standard deviation 0).";
    throw new LatentkitError("value.invalid", message);
  }
}

/** IMAGE [B, H, W, C] to MASK [B, H, W]: the channel's truncated byte over 255, as the mean of three equal copies. */
export function channelToMask(image: Tensor, channel: 0 | 1 | 2, out?: Tensor): Tensor {
  const [batch, height, width, channels] = fourSides("channelToMask", image, "[B, H, W, C]");
  if (channels !== 1 && channels !== 3 && channels !== 4)
    throw badShape("channelToMask", "1, 3 or 4 channels", `${channels}`);
  return produce(
    "channelToMask",
    [batch, height, width],
    image.size,
    out,
    (at, to) => at.ops.channelToMask(to, at.in(image), channels, channel),
    image,
  );
}

/** Planes [B, 3, H, W] to IMAGE [B, H, W, 3], clamped to 0 … 1; NaN is 0. @internal */
export function planesToImage(x: Tensor, out?: Tensor): Tensor {
  const [batch, channels, height, width] = fourSides("planesToImage", x, "[B, 3, H, W]");
  if (channels !== 3) throw badShape("planesToImage", "3 channels", `${channels}`);
  return produce(
    "planesToImage",
    [batch, height, width, 3],
    x.size,
    out,
    (at, to) => at.ops.planesToImage(to, at.in(x), batch),
    x,
  );
}

/**
 * resizeBilinear and planesToImage of planes [B, 3, h, w] in one: IMAGE [B, H, W, 3]. The CPU computes it when it is
 * read, so x must not change afterwards.
 */
export function resizeToImage(x: Tensor, height: number, width: number): Tensor {
  const [batch, channels, inHeight, inWidth] = fourSides("resizeToImage", x, "[B, 3, H, W]");
  if (channels !== 3) throw badShape("resizeToImage", "3 channels", `${channels}`);
  const shape = [batch, height, width, 3];
  const size = elementCount(shape);
  return compute(
    size,
    (at) => {
      if (at === CPU_SIDE && inHeight > 0 && inWidth > 0) {
        const memory = takeMemory(size * Float32Array.BYTES_PER_ELEMENT);
        const planes = { data: x.data, batch, height: inHeight, width: inWidth };
        return Tensor.deferred(new DeferredImage(memory, planes, height, width), shape);
      }
      const large = resizeBilinear(x, height, width);
      const image = planesToImage(large);
      releaseMemory(large.memory);
      return image;
    },
    x,
  );
}

/** x * 255, clipped to 0 … 255, truncated; NaN is 0. `out` takes x.size bytes. */
export function toBytes(x: Tensor, out = new Uint8Array(x.size)): Uint8Array {
  // size 0: the bytes are needed on the CPU, so values in its memory are not sent to a device for them
  return compute(0, (at) => at.toBytes(x, out), x);
}

/** toBytes of only item `index` of a batch, in a buffer of the pool. */
export function itemToBytes(x: Tensor, index: number): Uint8Array {
  const size = x.size / x.shape[0]!;
  const out = new Uint8Array(takeMemory(size));
  if (x.deferred !== undefined) x.deferred.toBytes(out, index, 1);
  else toBytes(Tensor.from(itemValues(x, index), [size]), out);
  return out;
}

/** x * 65535 of item `index` of a batch, rounded and clipped, NaN 0: two bytes each, big-endian, in a buffer of the pool. */
export function itemToUint16(x: Tensor, index: number): Uint8Array {
  const values = itemValues(x, index);
  const out = new Uint8Array(takeMemory(2 * values.length));
  loadNative().floatToUint16(out, values);
  return out;
}

/** byte / 255 */
export function fromBytes(bytes: Uint8Array, shape: readonly number[], out?: Tensor): Tensor {
  return produce("fromBytes", shape, 0, out, (at, _, result) => at.fromBytes(result, bytes));
}
