import { defineNode } from "../../define.js";
import { masksOf, offset } from "../../image-inputs.js";
import { mask } from "../../inputs.js";

/** Factor of each position of a line of n: it rises over the first and the last ones. */
function ramp(n: number, before: number, after: number): Float64Array {
  const [first, last] = [Math.min(before, n), Math.min(after, n)];
  const rise = (step: number, steps: number): number => (step < steps ? (step + 1) / steps : 1);
  return Float64Array.from({ length: n }, (_, at) => rise(at, first) * rise(n - 1 - at, last));
}

// decision 208
export const featherMask = defineNode({
  key: "FeatherMask",
  category: "mask",
  description: "Fades a mask out towards its edges, over a number of pixels at each.",
  inputs: { mask: mask(), left: offset(), top: offset(), right: offset(), bottom: offset() },
  outputs: { MASK: "MASK" },
  run: ({ mask, left, top, right, bottom }) => {
    const result = masksOf("mask", mask).clone();
    const [batch, height, width] = result.shape as readonly [number, number, number];
    const [down, across] = [ramp(height, top, bottom), ramp(width, left, right)];
    for (let line = 0, at = 0; line < batch * height; line++) {
      const factor = down[line % height]!;
      for (let x = 0; x < width; x++) result.data[at++]! *= factor * across[x]!;
    }
    return { MASK: result };
  },
});
