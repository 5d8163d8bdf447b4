import type { ControlSizes } from "../diffusion/control-pictures.js";
import { hasQwenImageControl, qwenImageControlPart } from "../qwen-image/control.js";
import { type ModelHeader, type Part, unwrappedFile } from "../recognition/part.js";
import { foreignKind } from "../recognition/refusal.js";
import { unsupported } from "../weights/stored.js";
import { hasZImageControl, zImageControlPart } from "../z-image/control.js";

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
  throw unsupported(file.name, EXPECTED, foreignKind(file.weights) ?? "unknown keys");
}
