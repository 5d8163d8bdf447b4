import { metadataText, saveImages } from "../../io/files/save-images.js";
import { receiptsOf } from "../core/files/save-image.js";
import { defineNode } from "../define.js";
import { boolean, image, text } from "../inputs.js";
import { validPaths } from "../output-inputs.js";

export const saveImageLazy = defineNode({
  key: "ext saveImageLazy",
  description: "Saves each image as PNG in the output folder and passes the images on.",
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
      files: context.output?.files,
      encodesHere: context.output?.encodesHere,
      receipt: save_metadata ? receiptsOf(context) : undefined,
      text: save_metadata ? metadataText(prompt, extra_pnginfo) : [],
      now: context.clock(),
      signal: context.signal,
    });
    return { result: [images], ui: { images: saved.map((file) => ({ ...file, type: "output" })) } };
  },
});
