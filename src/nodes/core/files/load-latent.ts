import { describe, LatentkitError } from "../../../base/errors.js";
import { checkInputFile, inputFileHash } from "../../../io/files/input-file.js";
import { isAddress } from "../../../io/files/input-text.js";
import { readSafetensors, toTensor } from "../../../io/safetensors/read.js";
import { scale } from "../../../tensor/ops.js";
import type { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { text } from "../../inputs.js";
import { FORMAT, SAMPLES } from "./save-latent.js";

const SUBJECT = 'input "latent"';

/** Files from before the format had a version hold latents of Stable Diffusion 1 scaled to a deviation of 1. */
const OLD_SCALE = 1 / 0.18215;

export const loadLatent = defineNode({
  key: "LoadLatent",
  displayName: "Load Latent",
  category: "_for_testing",
  description: "Reads a latent that SaveLatent has written.",
  inputs: { latent: text({ tooltip: "A .latent file, relative to the input folder." }) },
  outputs: { LATENT: "LATENT" },
  validate: ({ latent: name }, { inputDir: folder, files, hints }) => {
    if (typeof name !== "string" || folder === undefined) return true;
    if (isAddress(name)) return { latent: `expected a file's name, received ${describe(name)}` };
    try {
      checkInputFile({ folder, name, subject: SUBJECT, files }, hints);
      return true;
    } catch (error) {
      if (error instanceof LatentkitError) return { latent: error };
      throw error;
    }
  },
  isChanged: ({ latent }, { inputDir, files }) =>
    typeof latent === "string" && inputDir !== undefined ? inputFileHash(inputDir, latent, files) : Number.NaN,
  run: async ({ latent: name }, { readInput }) => {
    const bytes = await readInput(name, SUBJECT);
    return { LATENT: { samples: samplesOf(bytes, name) } };
  },
});

function samplesOf(bytes: Uint8Array, name: string): Tensor {
  try {
    const { tensors } = readSafetensors(bytes);
    const stored = tensors.get(SAMPLES);
    if (stored === undefined || stored.shape.length < 3 || stored.shape.length > 5)
      throw new LatentkitError("safetensors.invalid", `Expected a tensor "${SAMPLES}" of 3 to 5 axes.`);
    const samples = toTensor(stored);
    return tensors.has(FORMAT) ? samples : scale(samples, OLD_SCALE);
  } catch (error) {
    if (!(error instanceof LatentkitError)) throw error;
    const received = describe(name);
    const message = `${SUBJECT}: expected a latent that SaveLatent has written, received ${received}. ${error.message}`;
    throw new LatentkitError(error.code, message, { input: "latent", received }, { cause: error });
  }
}
