import { YieldTimer } from "../../../base/abort.js";
import type { ControlSizes } from "../diffusion/control-pictures.js";
import type { CheckpointParts, ModelFamily, RecognisedCheckpoint } from "../diffusion/family.js";
import { flux } from "../flux/recognise.js";
import { hasQwenImageControl, qwenImageControlPart } from "../qwen-image/control.js";
import { qwenImage } from "../qwen-image/recognise.js";
import { type ModelHeader, type Part, unwrappedFile } from "../recognition/part.js";
import { kindInWords } from "../recognition/refusal.js";
import { sd3 } from "../sd3/recognise.js";
import { stableDiffusion } from "../unet/stable-diffusion.js";
import { unsupported } from "../weights/stored.js";
import type { ReadValues } from "../weights/values.js";
import { hasZImageControl, zImageControlPart } from "../z-image/control.js";
import { zImage } from "../z-image/recognise.js";

/** The families, in the order in which a file is tried. The last one refuses all other files, by name. */
const FAMILIES: readonly ModelFamily[] = [qwenImage, zImage, flux, sd3, stableDiffusion];

/**
 * Recognises a checkpoint, or a file with only a diffusion model, by its keys and shapes. Afterwards every weight that the
 * builders ask for exists, with its shape. Throws model.unsupported for other models, by name, and model.invalid for
 * damaged ones.
 */
export async function recogniseCheckpoint(file: ModelHeader, read: ReadValues): Promise<RecognisedCheckpoint> {
  const timer = new YieldTimer();
  const steps = partsOf(file);
  let step = steps.next();
  for (; !step.done; step = steps.next()) if (timer.isDue) await timer.yield();
  return { ...step.value, sampling: await step.value.sampling(read) };
}

/** Recognises a checkpoint as recogniseCheckpoint does, from its header alone. Throws the same errors. */
export function requireCheckpoint(file: ModelHeader): CheckpointParts {
  const steps = partsOf(file);
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

function partsOf(whole: ModelHeader): Generator<undefined, CheckpointParts> {
  const file = unwrappedFile(whole, (weights) => FAMILIES.some(({ has }) => has(weights)));
  const family = FAMILIES.find(({ has }) => has(file.weights)) ?? FAMILIES.at(-1)!;
  return family.parts(file);
}

/** A model patch of a file. */
interface RecognisedPatch {
  /** Family of the models that take it. */
  readonly family: "z-image" | "qwen-image";
  readonly part: Part<ControlSizes>;
}

const EXPECTED = "a control net of Z-Image (Fun) or Qwen-Image (DiffSynth)";

/** Recognises a model patch. Throws model.unsupported for other files, by name, and model.invalid. */
export function recogniseModelPatch(whole: ModelHeader): RecognisedPatch {
  const file = unwrappedFile(whole, (weights) => hasZImageControl(weights) || hasQwenImageControl(weights));
  if (hasZImageControl(file.weights)) return { family: "z-image", part: zImageControlPart(file) };
  if (hasQwenImageControl(file.weights)) return { family: "qwen-image", part: qwenImageControlPart(file) };
  throw unsupported(file.name, EXPECTED, kindInWords(file.weights));
}
