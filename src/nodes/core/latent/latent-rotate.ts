import { turned } from "../../../tensor/turned.js";
import { defineNode } from "../../define.js";
import { choice, latent } from "../../inputs.js";

const ROTATIONS = ["none", "90 degrees", "180 degrees", "270 degrees"] as const;

export const latentRotate = defineNode({
  key: "LatentRotate",
  displayName: "Rotate Latent",
  category: "latent/transform",
  description: "Rotates a latent clockwise.",
  inputs: { samples: latent(), rotation: choice(ROTATIONS) },
  outputs: { LATENT: "LATENT" },
  run: ({ samples, rotation }) => ({
    LATENT: { ...samples, samples: turned(samples.samples, -2, ROTATIONS.indexOf(rotation)) },
  }),
});
