import { describe, LatentkitError } from "../../base/errors.js";
import { resizeBilinear } from "../../tensor/ops.js";
import { createGenerator } from "../../tensor/random.js";
import type { ModelSampling } from "../../tensor/sampling/model-sampling.js";
import { fourSides } from "../../tensor/shape.js";
import { Tensor } from "../../tensor/tensor.js";
import type { Conditioning, Model } from "../types.js";

/** Side of the sketch of a prompt in cells; the latent gets it enlarged. */
const SKETCH = 8;
/** Number of values that a conditioning is folded to for its sketch. */
const FOLDED = 32;
/** Standard deviation of latents around the mean of a prompt, in the model's units. */
const SPREAD = 0.5;
const SEED = 0x70726576;

/**
 * Makes a model without weights: latents of a prompt are Gaussian around a mean that follows from the conditioning, so
 * the best estimate of the clean latent has a closed form. predict takes x [B, C, h, w] in the model's units.
 */
export function previewModel(sampling: ModelSampling): Model {
  let projection: Float32Array | undefined;
  const { channels } = sampling.latentFormat;
  const predict = async (x: Tensor, sigma: number, cond: Conditioning, signal?: AbortSignal): Promise<Tensor> => {
    if (signal?.aborted) throw new LatentkitError("run.interrupted", "The run was interrupted.");
    refuseMisfit(x, sigma, channels, sampling.name);
    projection ??= createGenerator({ seed: SEED }).randn([channels * SKETCH * SKETCH, FOLDED]).data;
    const [, , rows, columns] = fourSides("predict", x);
    const mean = resizeBilinear(sketch(cond, projection, channels), rows, columns);
    return posteriorMean(x, mean, sigma, sampling.prediction === "flow");
  };
  return Object.freeze({ sampling, predict });
}

/**
 * E[clean | x] for clean ~ N(mean, SPREAD^2): with x = clean + sigma * noise, or for flow models
 * x = (1 - sigma) * clean + sigma * noise.
 */
function posteriorMean(x: Tensor, mean: Tensor, sigma: number, isFlow: boolean): Tensor {
  const keep = isFlow ? 1 - sigma : 1;
  const variance = SPREAD * SPREAD;
  const gain = (variance * keep) / (variance * keep * keep + sigma * sigma);
  const out = Tensor.zeros(x.shape);
  const [noisy, centres, clean] = [x.data, mean.data, out.data];
  for (let i = 0; i < clean.length; i++) {
    const centre = centres[i % centres.length]!;
    clean[i] = centre + gain * (noisy[i]! - keep * centre);
  }
  return out;
}

/** Sketch of a conditioning [C, 8, 8]: its folded mean row through a fixed projection. */
function sketch(cond: Conditioning, projection: Float32Array, channels: number): Tensor {
  const folded = foldedMean(cond);
  const picture = Tensor.zeros([channels, SKETCH, SKETCH]);
  for (let i = 0; i < picture.size; i++) {
    let value = 0;
    for (let k = 0; k < FOLDED; k++) value += folded[k]! * projection[i * FOLDED + k]!;
    picture.data[i] = value;
  }
  return picture;
}

/** Mean over all tokens of all entries, folded to FOLDED values of length 1; zeros where there are no tokens. */
function foldedMean(cond: Conditioning): Float64Array {
  const folded = new Float64Array(FOLDED);
  for (const [{ data, shape }] of cond) {
    const dim = shape[shape.length - 1] ?? 1;
    for (let i = 0; i < data.length; i++) folded[(i % dim) % FOLDED]! += data[i]!;
  }
  const length = Math.sqrt(folded.reduce((sum, value) => sum + value * value, 0));
  return length > 0 && Number.isFinite(length) ? folded.map((value) => value / length) : folded.fill(0);
}

function refuseMisfit(x: Tensor, sigma: number, channels: number, name: string): void {
  const [, count, rows, columns] = fourSides("predict", x);
  if (count !== channels || rows === 0 || columns === 0) {
    const message = `predict: expected a latent [B, ${channels}, h, w] for ${name}, received ${describe(x)}.`;
    throw new LatentkitError("tensor.bad-shape", message);
  }
  if (!Number.isFinite(sigma) || sigma < 0) {
    throw new LatentkitError("value.out-of-range", `predict: expected sigma from 0, received ${describe(sigma)}.`);
  }
}
