import { inputError, LatentkitError } from "../../../base/errors.js";
import type { StyleModel } from "../../../host/types.js";
import { scale } from "../../../tensor/ops.js";
import { joined } from "../../../tensor/parts.js";
import type { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { choice, conditioning, float, socket } from "../../inputs.js";

export const styleModelApply = defineNode({
  key: "StyleModelApply",
  displayName: "Apply Style Model",
  category: "conditioning/style_model",
  description: "Appends the tokens of an encoded picture to a prompt.",
  inputs: {
    conditioning: conditioning(),
    style_model: socket<StyleModel>("STYLE_MODEL"),
    clip_vision_output: socket<object>("CLIP_VISION_OUTPUT"),
    strength: float({ default: 1, min: 0, max: 10, step: 0.001 }),
    strength_type: choice(["multiply", "attn_bias"]),
  },
  outputs: { CONDITIONING: "CONDITIONING" },
  run: async ({ conditioning, style_model, clip_vision_output, strength, strength_type }) => {
    if (strength_type === "attn_bias" && strength !== 1) {
      const at = { input: "strength_type" };
      throw inputError("input.invalid", at, `"multiply", or strength 1 with "attn_bias"`, strength_type);
    }
    const words = await style_model.tokens(clip_vision_output);
    const weighed = strength === 1 ? words : scale(words, strength);
    return { CONDITIONING: conditioning.map(([tokens, options]) => [withWords(tokens, weighed), { ...options }]) };
  },
});

/** Tokens of a prompt [1, n, dim], then those of a picture [1, m, dim]. */
function withWords(prompt: Tensor, picture: Tensor): Tensor {
  const { shape } = prompt;
  if (shape.length === 3 && shape[0] === 1 && picture.hasShape(shape.with(1, picture.shape[1] ?? 0)))
    return joined([prompt, picture], 1);
  const shapes = `[${shape.join(", ")}] and [${picture.shape.join(", ")}]`;
  const message = `Style model: expected tokens [1, n, dim] of one dim, received ${shapes}.`;
  throw new LatentkitError("tensor.bad-shape", message);
}
