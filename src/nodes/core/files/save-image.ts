import { metadataText, saveImages } from "../../../io/files/save-images.js";
import type { RawImage } from "../../../io/raw-image.js";
import type { Tensor } from "../../../tensor/tensor.js";
import { defineNode, type NodeContext } from "../../define.js";
import { image, text } from "../../inputs.js";
import { validPaths } from "../../output-inputs.js";

/** Hidden inputs that are saved in the files as text. */
export const metadataInputs = { prompt: "PROMPT", extra_pnginfo: "EXTRA_PNGINFO" } as const;

interface Save {
  readonly images: Tensor;
  readonly prefix: string;
  readonly folder: string;
  readonly type: "output" | "temp";
  readonly prompt: unknown;
  readonly extraPnginfo: unknown;
  /** Whether the files are PNG whatever the format of the run. */
  readonly isPng?: boolean;
}

/** Settings of the run for this node's images; without `hasMetadata` those alone that are not about texts. */
export function savingOf({ output = {}, isBlocking, nodeId, clock, signal }: NodeContext, hasMetadata: boolean) {
  const { files, format, receipt, parameters } = output;
  const settings = { files, isBlocking, format, now: clock(), signal };
  if (!hasMetadata) return settings;
  return {
    ...settings,
    receipt: receipt && ((picture: RawImage) => receipt(nodeId, picture)),
    parameters: parameters && ((size: { width: number; height: number }) => parameters(nodeId, size)),
  };
}

/** Saves files under ComfyUI's names, `prefix_00001_.png`; nothing is overwritten. */
export async function savePictures(save: Save, context: NodeContext) {
  const { images, prefix, folder, type, prompt, extraPnginfo, isPng = false } = save;
  const saved = await saveImages(images, {
    outputFolder: folder,
    prefix,
    prefixInput: "filename_prefix",
    tail: "_",
    text: metadataText(prompt, extraPnginfo),
    ...savingOf(context, true),
    ...(isPng && { format: undefined }),
  });
  return { result: [], ui: { images: saved.map((file) => ({ ...file, type })) } };
}

export const saveImage = defineNode({
  key: "SaveImage",
  displayName: "Save Image",
  category: "image",
  description: "Saves each image in the output folder, as PNG or in the format of the run.",
  inputs: { images: image(), filename_prefix: text({ default: "latentkit" }) },
  outputs: {},
  hidden: metadataInputs,
  outputNode: true,
  writesFiles: true,
  hasUi: true,
  validate: ({ filename_prefix }) => validPaths({ filename_prefix }),
  run: ({ images, filename_prefix: prefix, prompt, extra_pnginfo: extraPnginfo }, context) =>
    savePictures({ images, prefix, folder: context.folders.output, type: "output", prompt, extraPnginfo }, context),
});
