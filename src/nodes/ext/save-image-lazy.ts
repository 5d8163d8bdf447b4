import { metadataText, saveImages } from "../../io/files/save-images.js";
import { savingOf } from "../core/save-files.js";
import { defineNode } from "../define.js";
import { boolean, image, text } from "../inputs.js";
import { validPaths } from "../output-inputs.js";

export const saveImageLazy = defineNode({
  key: "ext saveImageLazy",
  description: "Saves each image in the output folder, as PNG or in the format of the run, and passes the images on.",
  deprecated: true,
  inputs: {
    images: image(),
    filename_prefix: text({ default: "latentkit", strict: true }),
    save_metadata: boolean({ default: true }),
  },
  outputs: { images: "IMAGE" },
  hidden: { prompt: "PROMPT", extra_pnginfo: "EXTRA_PNGINFO" },
  writesFiles: true,
  hasUi: true,
  validate: ({ filename_prefix }) => validPaths({ filename_prefix }),
  run: async ({ images, filename_prefix, save_metadata, prompt, extra_pnginfo }, context) => {
    const saved = await saveImages(images, {
      outputFolder: context.folders.output,
      prefix: filename_prefix,
      prefixInput: "filename_prefix",
      text: save_metadata ? metadataText(prompt, extra_pnginfo) : [],
      ...savingOf(context, save_metadata),
    });
    return { result: [images], ui: { images: saved.map((file) => ({ ...file, type: "output" })) } };
  },
});
