import { inputError, LatentkitError } from "../../base/errors.js";
import type { Latent, LoaderSettings, Model, Pipe, Vae, Warn } from "../../host/types.js";
import { firstChannels } from "../../tensor/channels.js";
import { injectNoise, maskedBlend, scale } from "../../tensor/ops.js";
import { repeated } from "../../tensor/parts.js";
import { randn, scaledRandn } from "../../tensor/random.js";
import { SCHEDULERS, sigmas } from "../../tensor/sampling/sigmas.js";
import { elementCount, Tensor } from "../../tensor/tensor.js";
import { samplerName } from "../core/samplers.js";
import { defineNode } from "../define.js";
import { boolean, choice, float, image, int, latent, mask, model, pipe, seed } from "../inputs.js";
import { CELL, warnOfCut } from "../latents.js";
import { checkSocket } from "../sockets.js";

const NOISY_KEY = "ext latentNoisy";
const NOISE_CHANNELS = 4;

export const latentNoisy = defineNode({
  key: NOISY_KEY,
  description: "Noise, or a latent, at the strength that steps start_at_step to end_at_step of a schedule remove.",
  deprecated: true,
  inputs: {
    sampler_name: samplerName(),
    scheduler: choice(SCHEDULERS),
    steps: int({ default: 10000, min: 0, max: 10000 }),
    start_at_step: int({ default: 0, min: 0, max: 10000 }),
    end_at_step: int({ default: 10000, min: 1, max: 10000 }),
    source: choice(["CPU", "GPU"]),
    seed: seed(),
    pipe: pipe({ optional: true }),
    optional_model: model({ optional: true }),
    optional_latent: latent({ optional: true }),
  },
  outputs: [
    { name: "pipe", type: "PIPE_LINE" },
    { name: "latent", type: "LATENT" },
    { name: "sigma", type: "FLOAT" },
  ],
  noiseStream: ({ source }) => (source === "CPU" ? "cpu" : source === "GPU" ? "gpu" : undefined),
  run: (inputs) => {
    const { sampling } = modelOf(inputs.optional_model, inputs.pipe);
    const shape = inputs.optional_latent === undefined ? noiseShape(inputs.pipe) : undefined;
    const end = Math.min(inputs.steps, inputs.end_at_step);
    const start = Math.min(inputs.start_at_step, end);
    const schedule = sigmas({
      model: sampling,
      sampler: inputs.sampler_name,
      scheduler: inputs.scheduler,
      steps: inputs.steps,
    });
    // some schedules are shorter than steps + 1: an index past their end reads the last entry
    const at = (step: number) => schedule[Math.min(step, schedule.length - 1)]!;
    const sigma = Math.fround(Math.fround(at(start) - at(end)) / Math.fround(sampling.latentFormat.scaleFactor));
    const { seed, source } = inputs;
    const samples =
      shape === undefined ? scale(inputs.optional_latent!.samples, sigma) : scaledRandn(shape, sigma, { seed, source });
    const noisy: Latent = { ...inputs.optional_latent, samples };
    return { pipe: { ...inputs.pipe, samples: noisy }, latent: noisy, sigma };
  },
});

function modelOf(model: Model | undefined, pipe: Pipe | undefined): Model {
  if (model !== undefined) return model;
  const at = { node: NOISY_KEY, input: pipe === undefined ? "optional_model" : "pipe" };
  if (pipe?.model === undefined || pipe.model === null) {
    throw inputError("input.missing", at, "a model, as optional_model or in the pipe", undefined);
  }
  return checkSocket("MODEL", pipe.model, { node: NOISY_KEY, input: "pipe.model" }) as Model;
}

/** [batch_size, 4, empty_latent_height div 8, empty_latent_width div 8]; fails before memory of that size is allocated. */
function noiseShape(pipe: Pipe | undefined): number[] {
  const settings = pipe?.loader_settings;
  if (settings === undefined || settings === null) {
    const expected = "optional_latent, or a pipe with loader_settings";
    throw inputError("input.missing", { node: NOISY_KEY, input: "pipe" }, expected, undefined);
  }
  const cells = (key: keyof LoaderSettings) => Math.floor(sideOf(settings, key) / CELL);
  const [height, width] = [cells("empty_latent_height"), cells("empty_latent_width")];
  const shape = [sideOf(settings, "batch_size"), NOISE_CHANNELS, height, width];
  elementCount(shape);
  return shape;
}

function sideOf(settings: LoaderSettings, key: keyof LoaderSettings): number {
  const value = settings[key];
  const at = { node: NOISY_KEY, input: `pipe.loader_settings.${key}` };
  const expected = "a whole number from 0";
  if (value === undefined || value === null) throw inputError("input.missing", at, expected, value);
  if (typeof value !== "number") throw inputError("input.wrong-type", at, expected, value);
  if (!Number.isInteger(value)) throw inputError("input.not-finite", at, expected, value);
  if (value < 0) throw inputError("input.below-minimum", at, expected, value);
  return value;
}

const INJECT_KEY = "ext injectNoiseToLatent";

interface InjectSettings {
  readonly strength: number;
  readonly average: boolean;
  readonly normalize: boolean;
}

export const injectNoiseToLatent = defineNode({
  key: INJECT_KEY,
  description: "Adds noise to a latent: add or average, normalise, mask, then mix fresh noise in.",
  deprecated: true,
  inputs: {
    strength: float({ default: 0.1, min: 0, max: 200, step: 0.0001 }),
    normalize: boolean({ default: false }),
    average: boolean({ default: false }),
    pipe_to_noise: pipe({ optional: true }),
    image_to_latent: image({ optional: true }),
    latent: latent({ optional: true }),
    noise: latent({ optional: true }),
    mask: mask({ optional: true }),
    mix_randn_amount: float({ optional: true, default: 0, min: 0, max: 1000, step: 0.001 }),
    seed: seed({ optional: true, default: 123 }),
  },
  outputs: { LATENT: "LATENT" },
  noiseStream: () => "cpu",
  run: async (inputs, { log }) => {
    const { pipe_to_noise: pipe, mask, mix_randn_amount: mix } = inputs;
    if (pipe === undefined) throw missingInput("pipe_to_noise", "a pipe");
    const noise = noiseOf(inputs.noise, pipe).samples;
    const base = await baseOf(inputs.image_to_latent, inputs.latent, pipe, noise, log);
    refuseOtherShape(base.samples, noise);
    const masks = mask === undefined ? undefined : maskPlanes(mask, noise);
    const batch = noise.shape[0]!;
    const grows = masks !== undefined && masks.shape[0]! > batch;
    const shape = grows ? [masks.shape[0]!, ...noise.shape.slice(1)] : noise.shape;
    const random = mix > 0 ? randn(shape, { seed: inputs.seed }) : undefined;
    const { strength, average, normalize } = inputs;
    const samples = grows
      ? injectGrowing(base.samples, noise, { strength, average, normalize }, masks, mix, random)
      : injectNoise(base.samples, noise, { strength, average, normalize, mask: masks, mix, random });
    return { LATENT: { ...base, samples } };
  },
});

function noiseOf(noise: Latent | undefined, pipe: Pipe): Latent {
  if (noise !== undefined) return noise;
  if (pipe.samples === undefined || pipe.samples === null) {
    throw missingInput("noise", "a noise latent, or a pipe with samples (no noise provided)");
  }
  return checkSocket("LATENT", pipe.samples, { node: INJECT_KEY, input: "pipe_to_noise.samples" }) as Latent;
}

/** The encoded image, else the latent, else the noise itself. */
async function baseOf(
  image: Tensor | undefined,
  latent: Latent | undefined,
  pipe: Pipe,
  noise: Tensor,
  log: Warn,
): Promise<Latent> {
  if (image === undefined || pipe.vae === undefined || pipe.vae === null) return latent ?? { samples: noise };
  const vae = checkSocket("VAE", pipe.vae, { node: INJECT_KEY, input: "pipe_to_noise.vae" }) as Vae;
  warnOfCut(image, "image_to_latent", vae, log);
  const encoded: unknown = await vae.encode(firstThreeChannels(image), log);
  if (!(encoded instanceof Tensor) || encoded.shape.length < 3) {
    const expected = "a vae that encodes to a tensor [B, C, H, W]";
    throw inputError("input.wrong-type", { node: INJECT_KEY, input: "pipe_to_noise.vae" }, expected, encoded);
  }
  const times = batchSize(pipe);
  const shape = [encoded.shape[0]! * times, ...encoded.shape.slice(1)];
  refuseOtherShape({ shape }, noise);
  return { samples: repeated(encoded, times) };
}

function batchSize(pipe: Pipe): number {
  const size: unknown = pipe.loader_settings?.batch_size ?? 1;
  if (typeof size === "number" && Number.isInteger(size) && size >= 1) return size;
  const at = { node: INJECT_KEY, input: "pipe_to_noise.loader_settings.batch_size" };
  throw inputError("input.wrong-type", at, "a whole number from 1", size);
}

function firstThreeChannels(image: Tensor): Tensor {
  if (image.shape[3]! >= 3) return firstChannels(image, 3);
  const at = { node: INJECT_KEY, input: "image_to_latent" };
  throw inputError("input.wrong-type", at, "an image of 3 or 4 channels", image);
}

function refuseOtherShape(latent: { readonly shape: readonly number[] }, noise: Tensor): void {
  const [a, b] = [latent.shape.join(", "), noise.shape.join(", ")];
  if (a === b) return;
  throw new LatentkitError(
    "tensor.bad-shape",
    `${INJECT_KEY}, input "noise": latent and noise must have the same shape, received latent [${a}] and noise [${b}].`,
    { node: INJECT_KEY, input: "noise", expected: `shape [${a}]`, received: `shape [${b}]` },
  );
}

/** Masks as [N, h, w], channel axes unrolled: at most one for each latent, or any number for a single latent. */
function maskPlanes(mask: Tensor, noise: Tensor): Tensor {
  const at = { node: INJECT_KEY, input: "mask" };
  const [batch = 0, , height = 0, width = 0] = noise.shape;
  if (noise.shape.length !== 4)
    throw inputError("input.invalid", at, "no mask: only latents [B, C, H, W] can be masked", mask);
  const [h = 0, w = 0] = mask.shape.slice(-2);
  if (mask.size === 0 || noise.size === 0)
    throw inputError("input.invalid", at, "a mask and a latent with elements", mask);
  const count = mask.size / (h * w);
  if (count > batch && batch !== 1) {
    throw inputError("input.invalid", at, `at most as many masks as latents (${batch} latents, ${count} masks)`, mask);
  }
  elementCount([count, height, width]);
  return mask.reshape([count, h, w]);
}

/** A single latent under several masks: one result for each mask. */
function injectGrowing(
  base: Tensor,
  noise: Tensor,
  settings: InjectSettings,
  masks: Tensor,
  mix: number,
  random: Tensor | undefined,
): Tensor {
  const count = masks.shape[0]!;
  const injected = repeated(injectNoise(base, noise, settings), count);
  const blended = maskedBlend(injected, repeated(base, count), masks, injected);
  // the average of a value and itself is the value: only the mixing is left
  return mix > 0 ? injectNoise(blended, blended, { strength: 0, average: true, mix, random }, blended) : blended;
}

const missingInput = (input: string, expected: string) =>
  inputError("input.missing", { node: INJECT_KEY, input }, expected, undefined);
