import { counterFiles } from "../../../io/files/output-files.js";
import { expandPrefix, resolvePrefix } from "../../../io/files/output-path.js";
import { metadataText } from "../../../io/files/save-images.js";
import { writeSafetensors } from "../../../io/safetensors/write.js";
import { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { latent, text } from "../../inputs.js";
import { validPaths } from "../../output-inputs.js";
import { metadataInputs } from "./save-image.js";

/** Name of an empty tensor that marks values as the model's own, not scaled to a deviation of 1. */
export const FORMAT = "latent_format_version_0";
export const SAMPLES = "latent_tensor";
/** ComfyUI expands %width% and %height% of a latent's name to 0. */
const NO_SIZE = { width: 0, height: 0 };

export const saveLatent = defineNode({
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
});
