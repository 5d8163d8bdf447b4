import type { RecognisedCheckpoint } from "#src/host/checkpoint/diffusion/family.js";
import { recogniseCheckpoint } from "#src/host/checkpoint/families/recognise.js";
import type { ModelHeader, Part } from "#src/host/checkpoint/recognition/part.js";
import type { TextEncoderConfig } from "#src/host/checkpoint/text-encoder/build.js";
import type { UnetConfig } from "#src/host/checkpoint/unet/build.js";
import { readValues } from "#src/host/checkpoint/weights/values.js";
import { isWholeSet } from "./golden.js";
import { modelFile } from "./models-folder.js";
import { weightFile } from "./weight-file.js";

/** The golden checkpoints of the whole set. */
const WHOLE_SET = ["sd1", "sd1_fp32", "sd1_fp8", "sd1_inpaint", "sd2_eps_inpaint", "sd2_v", "sdxl"] as const;

/** Name of a golden checkpoint. */
export type CheckpointName = (typeof WHOLE_SET)[number];

/** The golden checkpoints at hand: those of the repository are three families, and three types of weights. */
export const CHECKPOINTS: readonly CheckpointName[] = isWholeSet ? WHOLE_SET : ["sd1_fp8", "sd1_inpaint", "sdxl"];

/** Puts a golden or tiny checkpoint into a folder and recognises it. */
export const recognised = async (name: string, folder: string): Promise<StableDiffusion> =>
  recogniseStableDiffusion(await weightFile(modelFile(`checkpoints/${name}`, folder)), readValues);

/** A checkpoint of Stable Diffusion, with its parts as their builders take them. */
export interface StableDiffusion extends Omit<RecognisedCheckpoint, "network" | "textEncoders"> {
  readonly unet: Part<UnetConfig>;
  readonly textEncoders: readonly Part<TextEncoderConfig>[];
}

/** Recognises a checkpoint, which has to be one of Stable Diffusion. */
export async function recogniseStableDiffusion(
  file: ModelHeader,
  read: Parameters<typeof recogniseCheckpoint>[1],
): Promise<StableDiffusion> {
  const { network, textEncoders, ...rest } = await recogniseCheckpoint(file, read);
  if (network.what !== "UNet") throw new Error(`${file.name} has no UNet`);
  return {
    ...rest,
    unet: network.part as Part<UnetConfig>,
    textEncoders: textEncoders.flatMap((text) => clipPart(text) ?? []),
  };
}

/** The part of an encoder of CLIP's; undefined of any other. */
export const clipPart = ({ kind, part }: RecognisedCheckpoint["textEncoders"][number]) =>
  kind === "clip" ? part : undefined;
