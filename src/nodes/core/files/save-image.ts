import { metadataText, type SaveImagesOptions, saveImages } from "../../../io/files/save-images.js";
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
}

/** Makes receipts for this node's images; undefined where the run has none. */
export function receiptsOf({ output, nodeId }: NodeContext): SaveImagesOptions["receipt"] {
  const receipt = output?.receipt;
  return receipt === undefined ? undefined : (picture) => receipt(nodeId, picture);
}

/** Saves PNG files under ComfyUI's names, `prefix_00001_.png`; nothing is overwritten. */
export async function savePictures({ images, prefix, folder, type, prompt, extraPnginfo }: Save, context: NodeContext) {
  const saved = await saveImages(images, {
    outputFolder: folder,
    prefix,
    prefixInput: "filename_prefix",
    tail: "_",
    text: metadataText(prompt, extraPnginfo),
    now: context.clock(),
    signal: context.signal,
    files: context.output?.files,
    receipt: receiptsOf(context),
    encodesHere: context.output?.encodesHere,
  });
  return { result: [], ui: { images: saved.map((file) => ({ ...file, type })) } };
}

export const saveImage = defineNode({
  key: "SaveImage",
  displayName: "Save Image",
  category: "image",
  description: "Saves each image as PNG in the output folder.",
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
