import { flipped, transposed } from "../../../tensor/parts.js";
import type { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { choice, latent } from "../../inputs.js";

const ROTATIONS = ["none", "90 degrees", "180 degrees", "270 degrees"] as const;

export const latentRotate = defineNode({
  key: "LatentRotate",
  displayName: "Rotate Latent",
  category: "latent/transform",
  description: "A latent turned clockwise.",
  inputs: { samples: latent(), rotation: choice(ROTATIONS) },
  outputs: { LATENT: "LATENT" },
  run: ({ samples, rotation }) => ({ LATENT: { ...samples, samples: rotated(samples.samples, rotation) } }),
});

function rotated(x: Tensor, rotation: (typeof ROTATIONS)[number]): Tensor {
  if (rotation === "none") return x;
  if (rotation === "180 degrees") return flipped(flipped(x, -2), -1);
  return transposed(flipped(x, rotation === "90 degrees" ? -2 : -1));
}
