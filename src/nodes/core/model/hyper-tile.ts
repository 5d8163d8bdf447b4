import { defineNode } from "../../define.js";
import { changedModel, patches } from "../../host-files.js";
import { boolean, int } from "../../inputs.js";

export const hyperTile = defineNode({
  key: "HyperTile",
  category: "model_patches/unet",
  description: "Splits the self-attention of large latents into tiles.",
  inputs: {
    model: changedModel(),
    tile_size: int({ default: 256, min: 1, max: 2048 }),
    swap_size: int({ default: 2, min: 1, max: 128 }),
    max_depth: int({ default: 0, min: 0, max: 10 }),
    scale_depth: boolean({ default: false }),
  },
  outputs: { MODEL: "MODEL" },
  run: patches("HyperTile"),
});
