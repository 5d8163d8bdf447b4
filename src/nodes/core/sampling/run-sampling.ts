import { type Sampled, type SampleOptions, sample, sampleWithEstimate } from "../../../host/sampling/sample.js";
import type { Latent, Model } from "../../../host/types.js";
import { latentToRgb } from "../../../tensor/latent-rgb.js";
import { planesToImage, std } from "../../../tensor/ops.js";
import { LATENT_RGB } from "../../../tensor/sampling/latent-rgb.js";
import type { ModelSampling } from "../../../tensor/sampling/model-sampling.js";
import { isFlow } from "../../../tensor/sampling/noise-level.js";
import type { Tensor } from "../../../tensor/tensor.js";
import type { NodeContext } from "../../define.js";

type Surroundings = Pick<NodeContext, "signal" | "progress" | "log">;
type NodeSampling = Omit<SampleOptions, "signal" | "onStep">;

/**
 * `sample` in a node: its signal stops the run, each step is progress, and noise levels of another family of models and
 * NaN or infinity in the result are logged.
 */
export async function sampleInNode(context: Surroundings, sampling: NodeSampling): Promise<Latent> {
  warnOfForeignSigmas(sampling, context);
  const latent = await sample(inNode(context, sampling));
  warnOfNonFinite(latent.samples, context);
  return latent;
}

/** `sampleInNode`, and the last estimate. */
export async function sampleInNodeWithEstimate(context: Surroundings, sampling: NodeSampling): Promise<Sampled> {
  warnOfForeignSigmas(sampling, context);
  const sampled = await sampleWithEstimate(inNode(context, sampling));
  warnOfNonFinite(sampled.latent.samples, context);
  return sampled;
}

/** Options of sampling, where each step is progress with a preview of its estimate. */
const inNode = (
  { signal, progress }: Surroundings,
  { guider, sampler, sigmas, noise, latent }: NodeSampling,
): SampleOptions => ({
  // named one by one: more names after spread ones take V8 microseconds
  guider,
  sampler,
  sigmas,
  noise,
  latent,
  signal,
  // adaptive steps may be more than the schedule has
  onStep: (sampled) => {
    const { step, total } = sampled;
    progress(Math.min(step + 1, total), total, () => previewOf(sampled.denoised, guider.model));
  },
});

/** Beyond a flow's highest level, 1, solvers take logarithms and roots of negative numbers. */
function warnOfForeignSigmas({ sigmas, guider: { model } }: NodeSampling, context: Surroundings): void {
  const highest = Math.max(sigmas[0] ?? 0, sigmas[1] ?? 0);
  if (!isFlow(model.sampling) || highest <= 1.001) return;
  const expected = `noise levels from 1 to 0, as ${model.sampling.name} has`;
  context.log(`sigmas: expected ${expected}, received ${highest.toFixed(2)}.`);
}

function warnOfNonFinite(samples: Tensor, context: Surroundings): void {
  if (looksFinite(samples)) return;
  const count = samples.data.reduce((sum, value) => (Number.isFinite(value) ? sum : sum + 1), 0);
  if (count === 0) return;
  const numbers = `${count} of the latent's ${samples.size} numbers are NaN or infinite`;
  context.log(`${numbers}; pictures of it will be black or damaged.`);
}

/** Whether three numbers of each plane are finite: a network that fails leaves no finite number in an item. */
function looksFinite(samples: Tensor): boolean {
  // values on a device stay there
  if (samples.isAway) return Number.isFinite(std(samples));
  const { data, shape } = samples;
  const plane = shape.at(-2)! * shape.at(-1)!;
  let sum = 0;
  for (let at = 0; at < data.length; at += plane) sum += data[at]! + data[at + (plane >> 1)]! + data[at + plane - 1]!;
  return Number.isFinite(sum);
}

/** An estimate in the model's units as a picture, by the host's own decoder where it has one. */
const previewOf = (denoised: Tensor, model: Model): Tensor | Promise<Tensor> | undefined =>
  model.preview?.(denoised) ?? cellsOf(denoised, model.sampling);

/** A small image [B, h, w, 3]; undefined for a format without published factors. */
function cellsOf(denoised: Tensor, { latentFormat }: ModelSampling): Tensor | undefined {
  const table = LATENT_RGB.find(({ format }) => format.name === latentFormat.name);
  if (table === undefined || denoised.shape.length !== 4 || denoised.shape[1] !== table.factors.length)
    return undefined;
  const asModel = { ...latentFormat, scaleFactor: 1, shiftFactor: 0 };
  const [factors, bias] = [Float64Array.from(table.factors.flat()), Float64Array.from(table.bias)];
  return planesToImage(latentToRgb(denoised, asModel, factors, bias));
}
