import { join } from "node:path";
import { defineNode } from "../define.js";
import { image } from "../inputs.js";
import { metadataInputs, savePictures } from "./save-image.js";

/** Previews stay out of the output folder's root; the folder is named as the host's type for them. */
export const TEMPORARY = "temp";

export const previewImage = defineNode({
  key: "PreviewImage",
  displayName: "Preview Image",
  category: "image",
  description: "Saves each image as PNG in a folder for what need not be kept.",
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
});
