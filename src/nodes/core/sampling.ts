import { addedNoise } from "../../host/sampling/noise.js";
import { type Sampled, type SampleOptions, sample, scheduledSigmas } from "../../host/sampling/sample.js";
import type { Model } from "../../host/types.js";
import { latentToRgb } from "../../tensor/latents.js";
import { planesToImage, std } from "../../tensor/ops.js";
import { LATENT_RGB } from "../../tensor/sampling/latent-format.js";
import type { ModelSampling } from "../../tensor/sampling/model-sampling.js";
import { isFlow } from "../../tensor/sampling/noise-level.js";
import { SCHEDULERS } from "../../tensor/sampling/sigmas.js";
import type { Tensor } from "../../tensor/tensor.js";
import { defineNode, type NodeContext } from "../define.js";
import {
  boolean,
  choice,
  conditioning,
  float,
  guider,
  int,
  latent,
  model,
  noise,
  sampler,
  seed,
  sigmas,
} from "../inputs.js";
import { cfgFactor, samplerName } from "./samplers.js";

const RESULT_AND_ESTIMATE = [
  { name: "output", type: "LATENT" },
  { name: "denoised_output", type: "LATENT" },
] as const;

export const samplingNodes = [
  defineNode({
    key: "KSampler",
    category: "sampling",
    description: "Denoises a latent; with denoise below 1 the result resembles it.",
    inputs: {
      model: model(),
      seed: seed(),
      steps: int({ default: 20, min: 1, max: 10000 }),
      cfg: cfgFactor(),
      sampler_name: samplerName(),
      scheduler: choice(SCHEDULERS),
      positive: conditioning(),
      negative: conditioning(),
      latent_image: latent(),
      denoise: float({ default: 1, min: 0, max: 1, step: 0.01 }),
    },
    outputs: { LATENT: "LATENT" },
    noiseStream: () => "cpu",
    run: async (inputs, { signal, progress, log }) => {
      const { model, positive, negative, cfg, seed, steps, scheduler, denoise } = inputs;
      const sampler = inputs.sampler_name;
      const sigmas = scheduledSigmas({ model: model.sampling, sampler, scheduler, steps, denoise });
      const options = {
        guider: { kind: "cfg" as const, model, positive, negative, cfg },
        sampler: { sampler, options: {} },
        sigmas,
        noise: { seed, enabled: true },
        latent: inputs.latent_image,
      };
      return { LATENT: (await sampleInNode({ signal, progress, log }, options)).latent };
    },
  }),
  defineNode({
    key: "KSamplerAdvanced",
    displayName: "KSampler (Advanced)",
    category: "sampling",
    description: "Denoises a latent over a range of steps; can start without added noise and end with noise left over.",
    inputs: {
      model: model(),
      add_noise: choice(["enable", "disable"]),
      noise_seed: seed(),
      steps: int({ default: 20, min: 1, max: 10000 }),
      cfg: cfgFactor(),
      sampler_name: samplerName(),
      scheduler: choice(SCHEDULERS),
      positive: conditioning(),
      negative: conditioning(),
      latent_image: latent(),
      start_at_step: int({ default: 0, min: 0, max: 10000 }),
      end_at_step: int({ default: 10000, min: 0, max: 10000 }),
      return_with_leftover_noise: choice(["disable", "enable"]),
    },
    outputs: { LATENT: "LATENT" },
    noiseStream: () => "cpu",
    run: async (inputs, { signal, progress, log }) => {
      const { model, positive, negative, cfg, steps, scheduler } = inputs;
      const sampler = inputs.sampler_name;
      const leavesNoise = inputs.return_with_leftover_noise === "enable";
      const window = { start: inputs.start_at_step, end: inputs.end_at_step, leavesNoise };
      const options = {
        guider: { kind: "cfg" as const, model, positive, negative, cfg },
        sampler: { sampler, options: {} },
        sigmas: scheduledSigmas({ model: model.sampling, sampler, scheduler, steps }, window),
        noise: { seed: inputs.noise_seed, enabled: inputs.add_noise === "enable" },
        latent: inputs.latent_image,
      };
      return { LATENT: (await sampleInNode({ signal, progress, log }, options)).latent };
    },
  }),
  defineNode({
    key: "SamplerCustom",
    category: "sampling/custom_sampling",
    description:
      "Denoises a latent with a sampler and sigmas; the second output is the last estimate of the clean latent.",
    inputs: {
      model: model(),
      add_noise: boolean({ default: true }),
      noise_seed: seed(),
      cfg: cfgFactor(),
      positive: conditioning(),
      negative: conditioning(),
      sampler: sampler(),
      sigmas: sigmas(),
      latent_image: latent(),
    },
    outputs: RESULT_AND_ESTIMATE,
    noiseStream: () => "cpu",
    run: async ({ model, positive, negative, cfg, sampler, sigmas, ...inputs }, { signal, progress, log }) => {
      const options = {
        guider: { kind: "cfg" as const, model, positive, negative, cfg },
        sampler,
        sigmas: sigmas.data,
        noise: { seed: inputs.noise_seed, enabled: inputs.add_noise },
        latent: inputs.latent_image,
      };
      return sampledBoth({ signal, progress, log }, options);
    },
  }),
  defineNode({
    key: "SamplerCustomAdvanced",
    category: "sampling/custom_sampling",
    description:
      "Denoises a latent with a guider, a sampler and sigmas; the second output is the last estimate of the clean latent.",
    inputs: { noise: noise(), guider: guider(), sampler: sampler(), sigmas: sigmas(), latent_image: latent() },
    outputs: RESULT_AND_ESTIMATE,
    run: async ({ noise, guider, sampler, sigmas, latent_image }, { signal, progress, log }) => {
      const options = { noise, guider, sampler, sigmas: sigmas.data, latent: latent_image };
      return sampledBoth({ signal, progress, log }, options);
    },
  }),
  defineNode({
    key: "RandomNoise",
    category: "sampling/custom_sampling/noise",
    description: "Initial noise of a seed, for custom sampling.",
    inputs: { noise_seed: seed() },
    outputs: { NOISE: "NOISE" },
    noiseStream: () => "cpu",
    run: ({ noise_seed }) => ({ NOISE: { seed: noise_seed, enabled: true } }),
  }),
  defineNode({
    key: "DisableNoise",
    category: "sampling/custom_sampling/noise",
    description: "No initial noise, for latents that already have it.",
    inputs: {},
    outputs: { NOISE: "NOISE" },
    run: () => ({ NOISE: { seed: 0n, enabled: false } }),
  }),
  defineNode({
    key: "AddNoise",
    category: "_for_testing/custom_sampling/noise",
    description: "Adds the noise that the steps from the first to the last sigma would remove.",
    inputs: { model: model(), noise: noise(), sigmas: sigmas(), latent_image: latent() },
    outputs: { LATENT: "LATENT" },
    run: ({ model, noise, sigmas, latent_image }) => ({
      LATENT: addedNoise(model.sampling, noise, sigmas.data, latent_image),
    }),
  }),
] as const;

type SamplingContext = Pick<NodeContext, "signal" | "progress" | "log">;

type NodeSampling = Omit<SampleOptions, "signal" | "onStep">;

/**
 * `sample` in a node: its signal stops the run, each step is progress, and noise levels of another family of models and
 * NaN or infinity in the result are logged.
 */
async function sampleInNode(context: SamplingContext, sampling: NodeSampling, keepsEstimate = false): Promise<Sampled> {
  warnOfForeignSigmas(sampling, context);
  const sampled = await sample(inNode(context, sampling), keepsEstimate);
  warnOfNonFinite(sampled.latent.samples, context);
  return sampled;
}

/** Outputs of custom sampling. */
async function sampledBoth(context: SamplingContext, sampling: NodeSampling) {
  const { latent, denoised } = await sampleInNode(context, sampling, true);
  return { output: latent, denoised_output: denoised };
}

/** Options of sampling; each step is progress with a preview of its estimate. */
const inNode = (
  { signal, progress }: SamplingContext,
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
function warnOfForeignSigmas({ sigmas, guider: { model } }: NodeSampling, context: SamplingContext): void {
  const highest = Math.max(sigmas[0] ?? 0, sigmas[1] ?? 0);
  if (!isFlow(model.sampling) || highest <= 1.001) return;
  const expected = `noise levels from 1 to 0, as ${model.sampling.name} has`;
  context.log(`sigmas: expected ${expected}, received ${highest.toFixed(2)}.`);
}

function warnOfNonFinite(samples: Tensor, context: SamplingContext): void {
  if (looksFinite(samples)) return;
  const count = samples.data.reduce((sum, value) => (Number.isFinite(value) ? sum : sum + 1), 0);
  if (count === 0) return;
  const values = `${count} of ${samples.size} values in the latent are NaN or infinite`;
  context.log(`${values}; its pictures will be black or damaged.`);
}

/** Whether three numbers of each plane are finite: a failing network leaves only NaN or infinities in an item. */
function looksFinite(samples: Tensor): boolean {
  // values on a device stay there
  if (samples.isAway) return Number.isFinite(std(samples));
  const { data, shape } = samples;
  const plane = shape.at(-2)! * shape.at(-1)!;
  let sum = 0;
  for (let at = 0; at < data.length; at += plane) sum += data[at]! + data[at + (plane >> 1)]! + data[at + plane - 1]!;
  return Number.isFinite(sum);
}

/** An estimate in the model's units as a picture, by the host's own decoder if it has one. */
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
