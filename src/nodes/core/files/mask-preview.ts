import { join } from "node:path";
import { widened } from "../../../tensor/image/planes.js";
import { defineNode } from "../../define.js";
import { masksOf } from "../../image-inputs.js";
import { mask } from "../../inputs.js";
import { TEMPORARY } from "./preview-image.js";
import { metadataInputs, savePictures } from "./save-image.js";

export const maskPreview = defineNode({
  key: "MaskPreview",
  displayName: "Preview Mask",
  category: "mask",
  description: "Saves each mask as a grey picture in a folder for temporary files, as PNG or in the format of the run.",
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
});
