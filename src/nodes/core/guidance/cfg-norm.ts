import { inputError } from "../../../base/errors.js";
import { derivedModel } from "../../../host/derived-model.js";
import { fourSides } from "../../../tensor/shape.js";
import { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { boolean, float, model } from "../../inputs.js";

export const cfgNorm = defineNode({
  key: "CFGNorm",
  category: "advanced/guidance",
  description: "Limits each cell of the guided estimate to the length of the positive side's.",
  inputs: {
    model: model(),
    strength: float({ default: 1, min: 0, max: 100, step: 0.01 }),
    pre_cfg: boolean({
      optional: true,
      default: false,
      tooltip: "Must be false: only the guided estimate can be limited.",
    }),
  },
  outputs: [{ name: "patched_model", type: "MODEL" }],
  run: ({ model, strength, pre_cfg }) => {
    if (pre_cfg) throw inputError("value.invalid", { input: "pre_cfg" }, "false", pre_cfg);
    const patched_model = derivedModel(model, {
      guidance: (before) => ({
        ...before,
        after: [...(before?.after ?? []), (denoised, { cond }) => shortened(denoised, cond, strength)],
      }),
    });
    return { patched_model };
  },
});

/** Keeps the factor of a cell that is 0 finite. */
const NO_LENGTH = 1e-8;

/** Each cell times strength * min(1, |positive| / |guided|), with lengths over the channels. */
function shortened(guided: Tensor, positive: Tensor, strength: number): Tensor {
  const [batch, channels, height, width] = fourSides("CFGNorm", guided);
  const plane = height * width;
  const out = Tensor.unfilled(guided.shape);
  const [from, into] = [guided.data, out.data];
  for (let cell = 0; cell < batch * plane; cell++) {
    const first = Math.floor(cell / plane) * channels * plane + (cell % plane);
    const length = lengthOf(from, first, plane, channels);
    const factor = strength * Math.min(1, lengthOf(positive.data, first, plane, channels) / (length + NO_LENGTH));
    for (let i = first, left = channels; left > 0; i += plane, left--) into[i] = from[i]! * factor;
  }
  return out;
}

/** Length of the vector of a cell's channels, in double. */
function lengthOf(values: Float32Array, first: number, plane: number, channels: number): number {
  let sum = 0;
  for (let i = first, left = channels; left > 0; i += plane, left--) sum += values[i]! * values[i]!;
  return Math.sqrt(sum);
}
