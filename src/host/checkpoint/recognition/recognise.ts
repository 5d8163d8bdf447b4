import { YieldTimer } from "../../../base/yield-timer.js";
import type { ReadValues } from "../weights/values.js";
import { type ModelFile, unwrappedFile } from "./part.js";
import type { CheckpointSampling, RecognisedCheckpoint } from "./recognised.js";
import { type StableDiffusionParts, stableDiffusionParts, stableDiffusionSampling } from "./stable-diffusion.js";
import { findQwen3, qwen3Part } from "./transformers/qwen3.js";
import { findZImage, zImagePart } from "./transformers/z-image.js";
import { findUnet } from "./unet.js";
import { vaeOfCheckpoint } from "./vae.js";

type Parts = Omit<RecognisedCheckpoint, "sampling">;

/**
 * Recognises a checkpoint, or a file with a diffusion model alone, by its keys and shapes. Every weight that the builders
 * ask for is there afterwards, with that shape. Throws model.unsupported for other models, by name, and model.invalid for
 * damaged ones.
 */
export async function recogniseCheckpoint(whole: ModelFile, read: ReadValues): Promise<RecognisedCheckpoint> {
  const file = withoutWrapper(whole);
  const transformer = zImageParts(file);
  if (transformer !== undefined) return { ...transformer, sampling: Z_IMAGE_SAMPLING };
  const timer = new YieldTimer();
  const steps = stableDiffusionParts(file);
  let step = steps.next();
  for (; !step.done; step = steps.next()) if (timer.isDue) await timer.yield();
  return { ...withKinds(step.value), sampling: await stableDiffusionSampling(step.value, read) };
}

/** Recognises a checkpoint as recogniseCheckpoint does, as far as its header tells. Throws as it. */
export function requireCheckpoint(whole: ModelFile): Pick<RecognisedCheckpoint, "textEncoders"> {
  const file = withoutWrapper(whole);
  const transformer = zImageParts(file);
  if (transformer !== undefined) return transformer;
  const steps = stableDiffusionParts(file);
  for (;;) {
    const { done, value } = steps.next();
    if (done) return withKinds(value);
  }
}

const withoutWrapper = (whole: ModelFile): ModelFile =>
  unwrappedFile(whole, (weights) => findUnet({ weights }) !== undefined || findZImage({ weights }) !== undefined);

function withKinds({ unet, textEncoders, family, vae, inpaint, ignored }: StableDiffusionParts): Parts {
  return {
    ...{ family, vae, inpaint, ignored },
    network: { kind: "unet", part: unet },
    textEncoders: textEncoders.map((part) => ({ kind: "clip", part })),
  };
}

const Z_IMAGE_SAMPLING: CheckpointSampling = {
  schedule: "z-image",
  prediction: "flow",
  zeroTerminalSnr: false,
  latentFormat: "Flux",
};

/** The parts of a checkpoint of Z-Image; undefined for another file. */
function zImageParts(file: ModelFile): Parts | undefined {
  const prefix = findZImage(file);
  if (prefix === undefined) return undefined;
  const part = zImagePart(file, prefix);
  const qwen3 = findQwen3(file.weights);
  const textEncoders = qwen3 === undefined ? [] : [{ kind: "qwen3", part: qwen3Part(file, qwen3) } as const];
  const vae = vaeOfCheckpoint(file);
  const used = [part, ...textEncoders.map((encoder) => encoder.part), ...(vae === undefined ? [] : [vae])];
  return {
    ...{ family: "z-image", network: { kind: "z-image", part }, textEncoders, vae, inpaint: false },
    ignored: file.weights.size - used.reduce((sum, { weights }) => sum + weights.size, 0),
  };
}
