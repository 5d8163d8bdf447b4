import { join } from "node:path";
import { defineNode } from "../../define.js";
import { image } from "../../inputs.js";
import { metadataInputs, savePictures } from "./save-image.js";

/** Folder of previews inside the output folder, named like ComfyUI's type for them. */
export const TEMPORARY = "temp";

export const previewImage = defineNode({
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
});
