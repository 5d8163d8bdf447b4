import { describe, LatentkitError } from "../../base/errors.js";
import { sumOfItems } from "../../tensor/items.js";
import { resizeBilinear, type Term, weightedSum } from "../../tensor/ops.js";
import { narrowed } from "../../tensor/parts.js";
import type { LatentFormat } from "../../tensor/sampling/latent-format.js";
import type { ModelSampling } from "../../tensor/sampling/model-sampling.js";
import { isFlow } from "../../tensor/sampling/noise-level.js";
import { fourSides } from "../../tensor/shape.js";
import { Tensor } from "../../tensor/tensor.js";

/**
 * Latents [B, C, H, W] as a model takes them: all-zero ones get the channels of the model's latent format. Fails with
 * tensor.bad-shape for empty ones of other cells, whose picture would have another size.
 */
export function withChannels(samples: Tensor, { latentFormat }: ModelSampling): Tensor {
  const [batch, channels, height, width] = fourSides("latent", samples);
  if (samples.size === 0) {
    throw new LatentkitError("tensor.bad-shape", `latent: expected at least one cell, received ${describe(samples)}.`);
  }
  if (channels === latentFormat.channels || !isZero(samples)) return samples;
  // decisions: An empty latent of other cells is refused
  if (latentFormat.cell !== undefined) {
    const expected = `${latentFormat.channels} channels, a cell for ${latentFormat.cell} x ${latentFormat.cell} pixels`;
    const message = `latent: expected one of ${expected} (EmptyFlux2LatentImage), received ${describe(samples)}.`;
    throw new LatentkitError("tensor.bad-shape", message);
  }
  return Tensor.zeros([batch, latentFormat.channels, height, width]);
}

/** Latents in the model's units (LatentFormat), but zeros stay zeros in formats with a shift or means too. */
export const intoModel = (samples: Tensor, { latentFormat }: ModelSampling): Tensor =>
  isZero(samples) ? samples : modelUnits(samples, latentFormat);

/** Latents in the model's units, zeros as all others. */
export function modelUnits(samples: Tensor, { scaleFactor, shiftFactor, statistics }: LatentFormat): Tensor {
  if (statistics !== undefined) {
    const factors = statistics.deviation.map((deviation) => scaleFactor / deviation);
    return byChannel(samples, factors, (factor, channel) => -statistics.mean[channel]! * factor);
  }
  return weightedSum([[scaleFactor, samples], ...constant(samples, -shiftFactor * scaleFactor)]);
}

/** Latents in the VAE's units (LatentFormat), of x that a flow has divided by 1 - sigma. */
export function outOfModel(x: Tensor, sampling: ModelSampling, sigma = 0): Tensor {
  const { scaleFactor, shiftFactor, statistics } = sampling.latentFormat;
  const scale = isFlow(sampling) ? scaleFactor * (1 - sigma) : scaleFactor;
  if (statistics !== undefined) {
    const factors = statistics.deviation.map((deviation) => deviation / scale);
    return byChannel(x, factors, (_, channel) => statistics.mean[channel]!);
  }
  return weightedSum([[1 / scale, x], ...constant(x, shiftFactor)]);
}

/** A clean latent with N(0, 1) noise at a noise level; no noise if it is absent. */
export const noised = (sampling: ModelSampling, sigma: number, noise: Tensor | undefined, latent: Tensor): Tensor =>
  weightedSum(noisedTerms(sampling, sigma, noise, latent));

/**
 * The terms of `noised`; `isFirst` of a sampler's input: from the model's highest level on, noise has the deviation that
 * latents of variance 1 would have with it.
 */
export function noisedTerms(
  sampling: ModelSampling,
  sigma: number,
  noise: Tensor | undefined,
  latent: Tensor,
  isFirst = false,
): Term[] {
  const isMost = isFirst && !isFlow(sampling) && isHighest(sigma, sampling.sigmaMax);
  const terms: Term[] = noise === undefined ? [] : [[isMost ? highestDeviation(sigma) : sigma, noise]];
  return [...terms, [isFlow(sampling) ? 1 - sigma : 1, latent]];
}

/** sqrt(1 + sigma²) in the float32 steps of the reference: at sigma 4,500 a rounding of x shows in the result. */
const highestDeviation = (sigma: number): number => Math.fround(Math.sqrt(Math.fround(1 + Math.fround(sigma * sigma))));

const isHighest = (sigma: number, highest: number): boolean =>
  sigma > highest || Math.abs(sigma - highest) <= 1e-5 * Math.max(Math.abs(sigma), Math.abs(highest));

const ZERO_BYTES = new Uint8Array(2 ** 14);

/** Whether every value is 0; NaN is not. */
function isZero(x: Tensor): boolean {
  const { data } = x;
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  const block = ZERO_BYTES.length;
  let at = 0;
  // most latents to test are all zeros: comparing bytes takes a tenth of the loop's time
  while (at + block <= bytes.length && bytes.compare(ZERO_BYTES, 0, block, at, at + block) === 0) at += block;
  for (let i = at / data.BYTES_PER_ELEMENT; i < data.length; i++) if (data[i] !== 0) return false;
  return true;
}

/** x * factor + addend, for each channel of [B, C, H, W]. */
function byChannel(x: Tensor, factors: readonly number[], addend: (factor: number, channel: number) => number): Tensor {
  const [batch, channels] = fourSides("latent", x);
  const planes = x.reshape([batch * channels, x.size / (batch * channels)]);
  const items = Array.from({ length: batch * channels }, (_, item) => (item % channels) % factors.length);
  return sumOfItems([
    [items.map((channel) => factors[channel]!), planes],
    [items.map((channel) => addend(factors[channel]!, channel)), Tensor.full(planes.shape, 1)],
  ]).reshape(x.shape);
}

const constant = (like: Tensor, value: number): readonly Term[] =>
  value === 0 ? [] : [[value, Tensor.full(like.shape, 1)]];

/** The noise mask of a latent as [n, H, W] of the latent's sides, with at most as many masks as latents; fewer repeat. */
export function denoiseMask(mask: unknown, shape: readonly number[]): Tensor | undefined {
  const [batch, , height, width] = shape as [number, number, number, number];
  return sizedMask("noise_mask", mask, [height, width], batch);
}

/** A mask [H, W] or [n, H, W] of any sides as at most `most` masks [n, height, width]. Fails with tensor.bad-shape. */
export function sizedMask(
  subject: string,
  mask: unknown,
  [height, width]: readonly [number, number],
  most = Number.POSITIVE_INFINITY,
): Tensor | undefined {
  if (mask === undefined || mask === null) return undefined;
  const [rows, columns] = mask instanceof Tensor ? mask.shape.slice(-2) : [];
  if (!(mask instanceof Tensor) || rows === undefined || columns === undefined || mask.size === 0) {
    const expected = "a mask [B, H, W] or [H, W] with elements";
    throw new LatentkitError("tensor.bad-shape", `${subject}: expected ${expected}, received ${describe(mask)}.`);
  }
  const count = mask.size / (rows * columns);
  const planes = mask.reshape([count, rows, columns]);
  const used = count > most ? narrowed(planes, 0, 0, most) : planes;
  return rows === height && columns === width ? used : resizeBilinear(used, height, width);
}
