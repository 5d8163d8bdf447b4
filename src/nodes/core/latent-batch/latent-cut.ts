import { narrowed } from "../../../tensor/parts.js";
import { warnOfClips } from "../../bends.js";
import { defineNode } from "../../define.js";
import { choice, int, latent } from "../../inputs.js";

/** Axes by ComfyUI's names: time is the one before height. */
export const AXES: Readonly<Record<string, number>> = { x: -1, y: -2, t: -3 };

export const latentCut = defineNode({
  key: "LatentCut",
  displayName: "Latent Cut",
  category: "latent/advanced",
  description: "A part of a latent along one axis, in cells; an index below 0 counts from the end.",
  inputs: {
    samples: latent(),
    dim: choice(["x", "y", "t"]),
    index: int({ default: 0, min: -16384, max: 16384, step: 1 }),
    amount: int({ default: 1, min: 1, max: 16384, step: 1 }),
  },
  outputs: { LATENT: "LATENT" },
  run: ({ samples: latent, dim, index, amount }, { log }) => {
    const { samples } = latent;
    const axis = AXES[dim]!;
    const length = samples.shape.at(axis) ?? 0;
    const from = index >= 0 ? Math.max(0, Math.min(index, length - 1)) : Math.max(0, length + index);
    const most = index >= 0 ? length - from : Math.min(-index, length);
    const count = Math.min(most, amount);
    const start = index >= 0 ? from : Math.max(index, -length);
    warnOfClips("latent", { index: [index, start], amount: [amount, count] }, log);
    return { LATENT: { ...latent, samples: narrowed(samples, axis, from, count) } };
  },
});
