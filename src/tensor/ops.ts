import { LatentkitError } from "../errors.js";
import { loadNative } from "../native/load.js";
import { fourSides, maskSides, outputOf, sameShape } from "./shape.js";
import type { Tensor } from "./tensor.js";

// `out` must have the result's shape; the operation writes there and answers it. It may be an input of that shape, but
// not a mask, composite's source or what resizeBilinear, channelToMask and planesToImage read. After a failure it holds anything.

/** x * k in float32; k is rounded to float32 first. */
export function scale(x: Tensor, k: number, out?: Tensor): Tensor {
  const result = outputOf("scale", x, out);
  loadNative().scale(result.data, x.data, k);
  return result;
}

/** x + y * k, two roundings. */
export function axpy(x: Tensor, y: Tensor, k: number, out?: Tensor): Tensor {
  sameShape("axpy", x, y);
  const result = outputOf("axpy", x, out);
  loadNative().axpy(result.data, x.data, y.data, k);
  return result;
}

/** (x + y) / 2 */
export function average(x: Tensor, y: Tensor, out?: Tensor): Tensor {
  sameShape("average", x, y);
  const result = outputOf("average", x, out);
  loadNative().average(result.data, x.data, y.data);
  return result;
}

/** a + (b - a) * t */
export function lerp(a: Tensor, b: Tensor, t: number, out?: Tensor): Tensor {
  sameShape("lerp", a, b);
  const result = outputOf("lerp", a, out);
  loadNative().lerp(result.data, a.data, b.data, t);
  return result;
}

/** Unbiased standard deviation of all elements (n - 1), as float32; NaN for fewer than two. */
export function std(x: Tensor): number {
  return loadNative().std(x.data);
}

/** Resizes the last two axes: bilinear, align_corners false, no antialias, edges clamped. */
export function resizeBilinear(x: Tensor, height: number, width: number, out?: Tensor): Tensor {
  const [planes, inHeight, inWidth] = maskSides("resizeBilinear", x);
  const result = outputOf("resizeBilinear", [...x.shape.slice(0, -2), height, width], out);
  loadNative().resizeBilinear(result.data, x.data, planes, inHeight, inWidth, height, width);
  return result;
}

/** m * a + (1 - m) * b over [B, C, H, W]; a mask of fewer items repeats, and is resized to H x W where it differs. */
export function maskedBlend(a: Tensor, b: Tensor, mask: Tensor, out?: Tensor): Tensor {
  sameShape("maskedBlend", a, b);
  const [batch, channels, height, width] = fourSides("maskedBlend", a);
  const [, maskHeight, maskWidth] = maskSides("maskedBlend", mask);
  const sized = maskHeight === height && maskWidth === width ? mask : resizeBilinear(mask, height, width);
  const result = outputOf("maskedBlend", a, out);
  const plane = height * width;
  const maskBatch = sized.size / plane;
  loadNative().maskedBlend(result.data, a.data, b.data, sized.data, batch, channels, plane, maskBatch);
  return result;
}

/**
 * source pasted at (x, y) of a copy of destination, both [B, C, H, W], cropped to the overlap. Source batches repeat or
 * are cut, its channels must match or be 1; covered elements are the source's exactly. mask [B, source H, source W]:
 * m * source + (1 - m) * destination.
 */
export function composite(destination: Tensor, source: Tensor, x = 0, y = 0, mask?: Tensor, out?: Tensor): Tensor {
  const shape = fourSides("composite destination", destination);
  const sourceShape = fourSides("composite source", source);
  if (sourceShape[1] !== shape[1] && sourceShape[1] !== 1) {
    throw new LatentkitError(
      "tensor.bad-shape",
      `composite: expected a source with ${shape[1]} channels or 1, received ${sourceShape[1]}.`,
    );
  }
  if (sourceShape[0] === 0 && shape[0] > 0) {
    throw new LatentkitError("tensor.bad-shape", "composite: expected a source with at least one item, received none.");
  }
  if (mask === undefined) {
    const result = copied("composite", destination, out);
    loadNative().composite(result.data, shape, source.data, sourceShape, x, y);
    return result;
  }
  const [maskBatch, maskHeight, maskWidth] = maskSides("composite", mask);
  if (maskHeight !== sourceShape[2] || maskWidth !== sourceShape[3]) {
    throw new LatentkitError(
      "tensor.bad-shape",
      `composite: expected a mask of the source's ${sourceShape[2]} x ${sourceShape[3]}, received ${maskHeight} x ${maskWidth}.`,
    );
  }
  const result = copied("composite", destination, out);
  loadNative().composite(result.data, shape, source.data, sourceShape, x, y, mask.data, maskBatch);
  return result;
}

function copied(what: string, from: Tensor, out: Tensor | undefined): Tensor {
  const result = outputOf(what, from, out);
  if (result.data !== from.data) result.data.set(from.data);
  return result;
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

/** Injects noise into a latent: add or average, normalise, mask, mix, in that order. Fails where the deviation is 0. */
export function injectNoise(base: Tensor, noise: Tensor, options: InjectNoiseOptions, out?: Tensor): Tensor {
  sameShape("injectNoise", base, noise);
  const { mask, random, mix = 0 } = options;
  if (random !== undefined) sameShape("injectNoise random", base, random);
  const result = outputOf("injectNoise", base, out);
  try {
    loadNative().injectNoise(result.data, base.data, noise.data, {
      strength: options.strength,
      average: options.average ?? false,
      normalize: options.normalize ?? false,
      shape: mask === undefined ? undefined : fourSides("injectNoise", base),
      mask: mask?.data,
      maskShape: mask === undefined ? undefined : maskSides("injectNoise", mask),
      mix,
      random: random?.data,
    });
  } catch (error) {
    if ((error as { status?: string }).status !== "zero-deviation") throw error;
    throw new LatentkitError(
      "value.invalid",
      "injectNoise, normalize: expected values that differ, standard deviation is 0.",
    );
  }
  return result;
}

/** IMAGE [B, H, W, C] to MASK [B, H, W]: the channel's truncated byte over 255, as the mean of three equal copies. */
export function channelToMask(image: Tensor, channel: 0 | 1 | 2, out?: Tensor): Tensor {
  const [batch, height, width, channels] = fourSides("channelToMask", image, "[B, H, W, C]");
  if (channels !== 1 && channels !== 3 && channels !== 4) {
    throw new LatentkitError("tensor.bad-shape", `channelToMask: expected 1, 3 or 4 channels, received ${channels}.`);
  }
  const result = outputOf("channelToMask", [batch, height, width], out);
  loadNative().channelToMask(result.data, image.data, channels, channel);
  return result;
}

/** Planes [B, 3, H, W] to IMAGE [B, H, W, 3], clamped to 0 … 1; NaN is 0. */
export function planesToImage(x: Tensor, out?: Tensor): Tensor {
  const [batch, channels, height, width] = fourSides("planesToImage", x, "[B, 3, H, W]");
  if (channels !== 3) {
    throw new LatentkitError("tensor.bad-shape", `planesToImage: expected 3 channels, received ${channels}.`);
  }
  const result = outputOf("planesToImage", [batch, height, width, 3], out);
  loadNative().planesToImage(result.data, x.data, batch);
  return result;
}

/** x * 255, clipped to 0 … 255, truncated; NaN is 0. `out` takes x.size bytes. */
export function toBytes(x: Tensor, out = new Uint8Array(x.size)): Uint8Array {
  loadNative().floatToByte(out, x.data);
  return out;
}

/** byte / 255 */
export function fromBytes(bytes: Uint8Array, shape: readonly number[], out?: Tensor): Tensor {
  const result = outputOf("fromBytes", shape, out);
  loadNative().byteToFloat(result.data, bytes);
  return result;
}
