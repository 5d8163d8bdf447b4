import { join } from "node:path";
import { describe } from "../../base/errors.js";
import { counterFiles } from "../../io/files/output-files.js";
import { expandPrefix, nameFault, pathFault, resolvePrefix } from "../../io/files/output-path.js";
import { metadataText, saveImages } from "../../io/files/save-images.js";
import type { RawImage } from "../../io/png/raw-image.js";
import { writeSafetensors } from "../../io/safetensors.js";
import { widened } from "../../tensor/channels.js";
import { Tensor } from "../../tensor/tensor.js";
import { defineNode, type NodeContext } from "../define.js";
import { image, latent, mask, text } from "../inputs.js";
import { masksOf } from "./image.js";

/** Hidden inputs that are saved in the files as text. */
const metadataInputs = { prompt: "PROMPT", extra_pnginfo: "EXTRA_PNGINFO" } as const;

export const fileSaverNodes = [
  defineNode({
    key: "MaskPreview",
    displayName: "Preview Mask",
    category: "mask",
    description:
      "Saves each mask as a grey picture in a folder for temporary files, as PNG or in the format of the run.",
    inputs: { mask: mask() },
    outputs: {},
    hidden: metadataInputs,
    outputNode: true,
    writesFiles: true,
    hasUi: true,
    run: ({ mask, prompt, extra_pnginfo: extraPnginfo }, context) => {
      const images = widened(masksOf("mask", mask), 3);
      const folder = join(context.folders.output, TEMPORARY);
      return savePictures({ images, prefix: "mask", folder, type: "temp", prompt, extraPnginfo }, context);
    },
  }),
  defineNode({
    key: "PreviewImage",
    displayName: "Preview Image",
    category: "image",
    description: "Saves each image in a folder for temporary files, as PNG or in the format of the run.",
    inputs: { images: image() },
    outputs: {},
    hidden: metadataInputs,
    outputNode: true,
    writesFiles: true,
    hasUi: true,
    run: ({ images, prompt, extra_pnginfo: extraPnginfo }, context) => {
      const folder = join(context.folders.output, TEMPORARY);
      return savePictures({ images, prefix: "preview", folder, type: "temp", prompt, extraPnginfo }, context);
    },
  }),
  defineNode({
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
  }),
  defineNode({
    key: "SaveLatent",
    displayName: "Save Latent",
    category: "_for_testing",
    description: "Saves a latent in the output folder, for LoadLatent.",
    inputs: { samples: latent(), filename_prefix: text({ default: "latents/latentkit" }) },
    outputs: {},
    hidden: metadataInputs,
    outputNode: true,
    writesFiles: true,
    hasUi: true,
    validate: ({ filename_prefix }) => validPaths({ filename_prefix }),
    run: async ({ samples, filename_prefix, prompt, extra_pnginfo }, { folders, clock, output }) => {
      const prefix = expandPrefix(filename_prefix, NO_SIZE, clock());
      const target = resolvePrefix(folders.output, prefix, "filename_prefix");
      const tensors = { [SAMPLES]: samples.samples, [FORMAT]: Tensor.zeros([0]) };
      const bytes = writeSafetensors(tensors, metadataText(prompt, extra_pnginfo));
      const files = output?.files ?? counterFiles;
      await files.makeFolder(folders.output, target);
      const filename = await files.writeNumbered(target.folder, target.name, "_.latent", bytes);
      return { result: [], ui: { latents: [{ filename, subfolder: target.subfolder, type: "output" }] } };
    },
  }),
  defineNode({
    key: "SaveImageWebsocket",
    category: "api/image",
    description:
      "Saves each image as a temporary PNG file, without the graph; the service also sends it through the WebSocket.",
    inputs: { images: image() },
    outputs: {},
    outputNode: true,
    writesFiles: true,
    hasUi: true,
    run: ({ images }, context) => {
      const folder = join(context.folders.output, TEMPORARY);
      const texts = { prompt: undefined, extraPnginfo: undefined };
      return savePictures({ images, prefix: "websocket", folder, type: "temp", isPng: true, ...texts }, context);
    },
  }),
] as const;

/** Folder of previews inside the output folder, named like ComfyUI's type for them. */
export const TEMPORARY = "temp";

interface Save {
  readonly images: Tensor;
  readonly prefix: string;
  readonly folder: string;
  readonly type: "output" | "temp";
  readonly prompt: unknown;
  readonly extraPnginfo: unknown;
  /** Whether the files are PNG regardless of the run's format. */
  readonly isPng?: boolean;
}

/** Settings of the run for this node's images; without `hasMetadata`, only those that do not concern texts. */
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
async function savePictures(save: Save, context: NodeContext) {
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

/** Name of an empty tensor that marks values as the model's own, not scaled to a deviation of 1. */
export const FORMAT = "latent_format_version_0";

export const SAMPLES = "latent_tensor";

/** ComfyUI expands %width% and %height% of a latent's name to 0. */
const NO_SIZE = { width: 0, height: 0 };

type Values = Readonly<Record<string, unknown>>;

/**
 * Validates the paths and file names that a node writes to: true, or the fault of each wrong input. Thus a graph fails
 * before anything is written; values that come through links are checked when the node runs.
 */
export function validPaths(paths: Values, names: Values = {}): true | Record<string, string> {
  const faults = { ...faultsOf(paths, pathFault), ...faultsOf(names, nameFault) };
  return Object.keys(faults).length === 0 ? true : faults;
}

function faultsOf(values: Values, faultOf: (text: string) => string | undefined): Record<string, string> {
  const faults: Record<string, string> = {};
  for (const [input, value] of Object.entries(values)) {
    const fault = typeof value === "string" ? faultOf(value) : undefined;
    if (fault !== undefined) faults[input] = `expected ${fault}, received ${describe(value)}`;
  }
  return faults;
}
