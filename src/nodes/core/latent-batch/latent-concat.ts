import { inputError } from "../../../base/errors.js";
import { cycled, joined } from "../../../tensor/parts.js";
import type { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { choice, latent } from "../../inputs.js";
import { AXES } from "./latent-cut.js";

export const latentConcat = defineNode({
  key: "LatentConcat",
  displayName: "Latent Concat",
  category: "latent/advanced",
  description: "Two latents side by side along one axis; with a minus the second comes first.",
  inputs: { samples1: latent(), samples2: latent(), dim: choice(["x", "-x", "y", "-y", "t", "-t"]) },
  outputs: { LATENT: "LATENT" },
  run: ({ samples1, samples2, dim }) => {
    const axis = AXES[dim.replace("-", "")]!;
    const first = samples1.samples;
    refuseMisfit(first, samples2.samples, first.shape.length + axis);
    const second = cycled(samples2.samples, first.shape[0]!);
    const samples = joined(dim.startsWith("-") ? [second, first] : [first, second], axis);
    return { LATENT: { ...samples1, samples } };
  },
});

function refuseMisfit(first: Tensor, second: Tensor, axis: number): void {
  const fits = (side: number, at: number) => at === 0 || at === axis || side === first.shape[at];
  if (axis > 0 && second.shape.length === first.shape.length && second.shape.every(fits)) return;
  const expected = `a latent that differs from [${first.shape.join(", ")}] only in its batch and axis ${axis}`;
  throw inputError("input.invalid", { input: "samples2" }, expected, second);
}
