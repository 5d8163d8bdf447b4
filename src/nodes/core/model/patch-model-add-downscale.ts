import { defineNode } from "../../define.js";
import { changedModel, patches } from "../../host-files.js";
import { boolean, choice, float, int } from "../../inputs.js";

const METHODS = ["bicubic", "nearest-exact", "bilinear", "area", "bislerp"] as const;

export const patchModelAddDownscale = defineNode({
  key: "PatchModelAddDownscale",
  displayName: "PatchModelAddDownscale (Kohya Deep Shrink)",
  category: "model_patches/unet",
  description: "Makes a UNet work on smaller latents in a range of the schedule.",
  inputs: {
    model: changedModel(),
    block_number: int({ default: 3, min: 1, max: 32, step: 1 }),
    downscale_factor: float({ default: 2, min: 0.1, max: 9, step: 0.001 }),
    start_percent: float({ default: 0, min: 0, max: 1, step: 0.001 }),
    end_percent: float({ default: 0.35, min: 0, max: 1, step: 0.001 }),
    downscale_after_skip: boolean({ default: true }),
    downscale_method: choice(METHODS),
    upscale_method: choice(METHODS),
  },
  outputs: { MODEL: "MODEL" },
  run: patches("PatchModelAddDownscale"),
});
