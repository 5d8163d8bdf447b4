import { LATENT_METHODS, resizeLatent } from "../../tensor/resize.js";
import { roundHalfEven } from "../../tensor/rounding.js";
import { CELL } from "../cells.js";
import { defineNode } from "../define.js";
import { choice, float, int, latent } from "../inputs.js";
import { scaledSides } from "../scaled-sides.js";

const latentUpscaleBy = defineNode({
  key: "LatentUpscaleBy",
  displayName: "Upscale Latent By",
  category: "latent",
  description: "Resizes a latent by a factor.",
  inputs: {
    samples: latent(),
    upscale_method: choice(LATENT_METHODS),
    scale_by: float({ default: 1.5, min: 0.01, max: 8, step: 0.01 }),
  },
  outputs: { LATENT: "LATENT" },
  run: ({ samples: from, upscale_method: method, scale_by }) => {
    const [height, width] = [from.samples.shape.at(-2)!, from.samples.shape.at(-1)!];
    const sides = scaledSides({ node: "LatentUpscaleBy", input: "scale_by" }, [height, width], scale_by);
    return { LATENT: { ...from, samples: resizeLatent(from.samples, { method, ...sides }) } };
  },
});

/** Smallest side of a result of LatentUpscale, in pixels. */
const LEAST = 64;

const newSide = () => ({
  ...int({ default: 512, min: 0, max: 16384, step: CELL }),
  used: (pixels: number) => (pixels === 0 ? 0 : Math.floor(Math.max(LEAST, pixels) / CELL) * CELL),
});

/** Sides in pixels; of two, a side of 0 follows the proportions. */
function sidesOf(rows: number, columns: number, height: number, width: number): [number, number] {
  const [high, wide] = [Math.max(LEAST, height), Math.max(LEAST, width)];
  if (width === 0) return [high, Math.max(LEAST, roundHalfEven((columns * high) / rows))];
  if (height === 0) return [Math.max(LEAST, roundHalfEven((rows * wide) / columns)), wide];
  return [high, wide];
}

const latentUpscale = defineNode({
  key: "LatentUpscale",
  displayName: "Upscale Latent",
  category: "latent",
  description: "Resizes a latent to a size in pixels; a side of 0 keeps the aspect ratio.",
  inputs: {
    samples: latent(),
    upscale_method: choice(LATENT_METHODS),
    width: newSide(),
    height: newSide(),
    crop: choice(["disabled", "center"]),
  },
  outputs: { LATENT: "LATENT" },
  run: ({ samples: from, upscale_method: method, width, height, crop }) => {
    if (width === 0 && height === 0) return { LATENT: from };
    const [high, wide] = sidesOf(from.samples.shape.at(-2)!, from.samples.shape.at(-1)!, height, width);
    const cells = { height: Math.floor(high / CELL), width: Math.floor(wide / CELL) };
    return { LATENT: { ...from, samples: resizeLatent(from.samples, { method, ...cells, crop }) } };
  },
});

export const latentScaleNodes = [latentUpscaleBy, latentUpscale] as const;
