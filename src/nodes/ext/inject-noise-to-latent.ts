import { inputError, LatentkitError } from "../../base/errors.js";
import type { Latent, Pipe, Vae, Warn } from "../../host/types.js";
import { firstChannels } from "../../tensor/channels.js";
import { injectNoise, maskedBlend } from "../../tensor/ops.js";
import { repeated } from "../../tensor/parts.js";
import { randn } from "../../tensor/random.js";
import { elementCount, Tensor } from "../../tensor/tensor.js";
import { warnOfCut } from "../cells.js";
import { defineNode } from "../define.js";
import { boolean, float, image, latent, mask, pipe, seed } from "../inputs.js";
import { checkSocket } from "../sockets.js";

const KEY = "ext injectNoiseToLatent";

interface Settings {
  readonly strength: number;
  readonly average: boolean;
  readonly normalize: boolean;
}

export const injectNoiseToLatent = defineNode({
  key: KEY,
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
    if (pipe === undefined) throw missing("pipe_to_noise", "a pipe");
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
    throw missing("noise", "a latent here or as samples of the pipe (no noise provided)");
  }
  return checkSocket("LATENT", pipe.samples, { node: KEY, input: "pipe_to_noise.samples" }) as Latent;
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
  const vae = checkSocket("VAE", pipe.vae, { node: KEY, input: "pipe_to_noise.vae" }) as Vae;
  warnOfCut(image, "image_to_latent", log);
  const encoded: unknown = await vae.encode(firstThreeChannels(image), log);
  if (!(encoded instanceof Tensor) || encoded.shape.length < 3) {
    throw inputError(
      "input.wrong-type",
      { node: KEY, input: "pipe_to_noise.vae" },
      "a vae that encodes to a tensor [B, C, H, W]",
      encoded,
    );
  }
  const times = batchSize(pipe);
  const shape = [encoded.shape[0]! * times, ...encoded.shape.slice(1)];
  refuseOtherShape({ shape }, noise);
  return { samples: repeated(encoded, times) };
}

function batchSize(pipe: Pipe): number {
  const size: unknown = pipe.loader_settings?.batch_size ?? 1;
  if (typeof size === "number" && Number.isInteger(size) && size >= 1) return size;
  const at = { node: KEY, input: "pipe_to_noise.loader_settings.batch_size" };
  throw inputError("input.wrong-type", at, "a whole number from 1", size);
}

function firstThreeChannels(image: Tensor): Tensor {
  if (image.shape[3]! >= 3) return firstChannels(image, 3);
  throw inputError("input.wrong-type", { node: KEY, input: "image_to_latent" }, "an image of 3 or 4 channels", image);
}

function refuseOtherShape(latent: { readonly shape: readonly number[] }, noise: Tensor): void {
  const [a, b] = [latent.shape.join(", "), noise.shape.join(", ")];
  if (a === b) return;
  throw new LatentkitError(
    "tensor.bad-shape",
    `${KEY}, input "noise": latent and noise must have the same shape, received latent [${a}] and noise [${b}].`,
    { node: KEY, input: "noise", expected: `shape [${a}]`, received: `shape [${b}]` },
  );
}

/** Masks as [N, h, w], channel axes unrolled: at most one for each latent, or any number for a single latent. */
function maskPlanes(mask: Tensor, noise: Tensor): Tensor {
  const at = { node: KEY, input: "mask" };
  const [batch = 0, , height = 0, width = 0] = noise.shape;
  if (noise.shape.length !== 4)
    throw inputError("input.invalid", at, "no mask for a latent that is not [B, C, H, W]", mask);
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
  settings: Settings,
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

const missing = (input: string, expected: string) =>
  inputError("input.missing", { node: KEY, input }, expected, undefined);
