import { YieldTimer } from "../../../base/abort.js";
import { findFlux, fluxPart, takesMask } from "../flux/recognise.js";
import type { CheckpointSampling } from "../recognition/family.js";
import { type ModelHeader, type Part, unwrappedFile } from "../recognition/part.js";
import { findTextEncoders, languageModels, type TextPart, textEncoderPart } from "../text-encoder/recognise.js";
import { findUnet } from "../unet/recognise.js";
import { vaeOfCheckpoint } from "../vae/recognise.js";
import { placedWeights } from "../weights/stored.js";
import type { ReadValues } from "../weights/values.js";
import { findZImage, zImagePart } from "../z-image/recognise.js";
import type { RecognisedCheckpoint } from "./recognised.js";
import { type StableDiffusionParts, stableDiffusionParts, stableDiffusionSampling } from "./stable-diffusion.js";

type Parts = Omit<RecognisedCheckpoint, "sampling">;

/**
 * Recognises a checkpoint, or a file with a diffusion model alone, by its keys and shapes. Every weight that the builders
 * ask for is there afterwards, with that shape. Throws model.unsupported for other models, by name, and model.invalid for
 * damaged ones.
 */
export async function recogniseCheckpoint(whole: ModelHeader, read: ReadValues): Promise<RecognisedCheckpoint> {
  const file = withoutWrapper(whole);
  const transformer = transformerParts(file);
  if (transformer !== undefined) return { ...transformer, sampling: flowOf(transformer.family) };
  const timer = new YieldTimer();
  const steps = stableDiffusionParts(file);
  let step = steps.next();
  for (; !step.done; step = steps.next()) if (timer.isDue) await timer.yield();
  return { ...withKinds(step.value), sampling: await stableDiffusionSampling(step.value, read) };
}

/** Recognises a checkpoint as recogniseCheckpoint does, as far as its header tells. Throws as it. */
export function requireCheckpoint(whole: ModelHeader): Pick<RecognisedCheckpoint, "textEncoders"> {
  const file = withoutWrapper(whole);
  const transformer = transformerParts(file);
  if (transformer !== undefined) return transformer;
  const steps = stableDiffusionParts(file);
  for (;;) {
    const { done, value } = steps.next();
    if (done) return withKinds(value);
  }
}

const withoutWrapper = (whole: ModelHeader): ModelHeader =>
  unwrappedFile(whole, (weights) => [findUnet, findZImage, findFlux].some((find) => find({ weights }) !== undefined));

function withKinds({ unet, textEncoders, family, vae, inpaint, ignored }: StableDiffusionParts): Parts {
  return {
    family,
    vae,
    inpaint,
    ignored,
    network: { kind: "unet", part: unet },
    textEncoders: textEncoders.map((part) => ({ kind: "clip", part })),
  };
}

/** Noise levels of a transformer, by its family. */
const flowOf = (family: TransformerFamily): CheckpointSampling => ({
  schedule: family,
  prediction: "flow",
  zeroTerminalSnr: false,
  latentFormat: "Flux",
});

type TransformerFamily = "z-image" | "flux" | "flux-schnell";
type TransformerParts = Parts & { readonly family: TransformerFamily };

/** The parts of a checkpoint whose network is a transformer; undefined for another file. */
function transformerParts(file: ModelHeader): TransformerParts | undefined {
  const found = findZImage(file);
  if (found !== undefined) {
    const part = zImagePart(file, found);
    const textEncoders = languageModels(file).filter(({ kind }) => kind === "qwen3");
    return joined(file, { family: "z-image", network: { kind: "z-image", part }, textEncoders, inpaint: false });
  }
  const prefix = findFlux(file);
  if (prefix === undefined) return undefined;
  const part = fluxPart(file, prefix);
  const { inputs, hasGuidance } = part.config;
  const clips = findTextEncoders(file.weights).map((encoder) => textEncoderPart(file, encoder, "l"));
  const textEncoders: TextPart[] = [
    ...clips.map((clip) => ({ kind: "clip", part: clip }) as const),
    ...languageModels(file).filter(({ kind }) => kind === "t5"),
  ];
  const family = hasGuidance ? "flux" : "flux-schnell";
  return joined(file, { family, network: { kind: "flux", part }, textEncoders, inpaint: takesMask(inputs) });
}

/** The parts with the VAE of the file. */
function joined(file: ModelHeader, parts: Omit<TransformerParts, "vae" | "ignored">): TransformerParts {
  const vae = vaeOfCheckpoint(file);
  const used = [parts.network, ...parts.textEncoders].map(({ part }): Part<unknown> => part);
  const all = [...used, ...(vae === undefined ? [] : [vae])].flatMap(({ weights }) => placedWeights(weights));
  return { ...parts, vae, ignored: file.weights.size - new Set(all.map(({ key }) => key)).size };
}
