import { defineNode } from "../define.js";
import { changedModel, merges, patches } from "../host-files.js";
import { boolean, choice, float, int, model, text } from "../inputs.js";

const factor = (value: number) => float({ default: value, min: 0, max: 10, step: 0.01 });
const share = (value: number) => float({ default: value, min: 0, max: 1, step: 0.01 });
/** Part of the schedule, from 0 to 1. */
const moment = (value: number) => float({ default: value, min: 0, max: 1, step: 0.001 });
const RESIZE_METHODS = ["bicubic", "nearest-exact", "bilinear", "area", "bislerp"] as const;

export const modelNodes = [
  defineNode({
    key: "FreeU",
    category: "model_patches/unet",
    description: "Rescales the backbone and the skip connections of a UNet.",
    inputs: { model: changedModel(), b1: factor(1.1), b2: factor(1.2), s1: factor(0.9), s2: factor(0.2) },
    outputs: { MODEL: "MODEL" },
    run: patches("FreeU"),
  }),
  defineNode({
    key: "FreeU_V2",
    category: "model_patches/unet",
    description: "Rescales the backbone and the skip connections of a UNet by the strength of its features.",
    inputs: { model: changedModel(), b1: factor(1.3), b2: factor(1.4), s1: factor(0.9), s2: factor(0.2) },
    outputs: { MODEL: "MODEL" },
    run: patches("FreeU_V2"),
  }),
  defineNode({
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
  }),
  defineNode({
    key: "TomePatchModel",
    category: "model_patches/unet",
    description: "Merges similar tokens in a UNet, which makes it faster.",
    inputs: { model: changedModel(["ratio", 0]), ratio: share(0.3) },
    outputs: { MODEL: "MODEL" },
    run: patches("TomePatchModel", "ratio"),
  }),
  defineNode({
    key: "PatchModelAddDownscale",
    displayName: "PatchModelAddDownscale (Kohya Deep Shrink)",
    category: "model_patches/unet",
    description: "Makes a UNet work on smaller latents in a range of the schedule.",
    inputs: {
      model: changedModel(),
      block_number: int({ default: 3, min: 1, max: 32, step: 1 }),
      downscale_factor: float({ default: 2, min: 0.1, max: 9, step: 0.001 }),
      start_percent: moment(0),
      end_percent: moment(0.35),
      downscale_after_skip: boolean({ default: true }),
      downscale_method: choice(RESIZE_METHODS),
      upscale_method: choice(RESIZE_METHODS),
    },
    outputs: { MODEL: "MODEL" },
    run: patches("PatchModelAddDownscale"),
  }),
  defineNode({
    key: "PerturbedAttentionGuidance",
    category: "model_patches/unet",
    description: "Guides away from an estimate without self-attention.",
    inputs: { model: changedModel(["scale", 0]), scale: float({ default: 3, min: 0, max: 100, step: 0.01 }) },
    outputs: { MODEL: "MODEL" },
    run: patches("PerturbedAttentionGuidance", "scale"),
  }),
  defineNode({
    key: "SelfAttentionGuidance",
    displayName: "Self-Attention Guidance",
    category: "_for_testing",
    description: "Guides away from an estimate blurred where the model attends.",
    inputs: {
      model: changedModel(["scale", 0]),
      scale: float({ default: 0.5, min: -2, max: 5, step: 0.01 }),
      blur_sigma: float({ default: 2, min: 0, max: 10, step: 0.1 }),
    },
    outputs: { MODEL: "MODEL" },
    run: patches("SelfAttentionGuidance", "scale"),
  }),
  defineNode({
    key: "SkipLayerGuidanceSD3",
    category: "advanced/guidance",
    description: "Guides away from an estimate without some layers of the model.",
    inputs: {
      model: changedModel(["scale", 0]),
      layers: text({ default: "7, 8, 9" }),
      scale: float({ default: 3, min: 0, max: 10, step: 0.1 }),
      start_percent: moment(0.01),
      end_percent: moment(0.15),
    },
    outputs: { MODEL: "MODEL" },
    run: patches("SkipLayerGuidanceSD3", "scale"),
  }),
  defineNode({
    key: "SkipLayerGuidanceDiT",
    category: "advanced/guidance",
    description: "Guides away from an estimate without some layers of the model.",
    inputs: {
      model: changedModel(),
      double_layers: text({ default: "7, 8, 9" }),
      single_layers: text({ default: "7, 8, 9" }),
      scale: float({ default: 3, min: 0, max: 10, step: 0.1 }),
      start_percent: moment(0.01),
      end_percent: moment(0.15),
      rescaling_scale: factor(0),
    },
    outputs: { MODEL: "MODEL" },
    run: patches("SkipLayerGuidanceDiT"),
  }),
  defineNode({
    key: "ModelMergeSimple",
    category: "advanced/model_merging",
    description: "Mixes the weights of two models; ratio is the share of the first.",
    inputs: { model1: changedModel(["ratio", 1]), model2: model(), ratio: share(1) },
    outputs: { MODEL: "MODEL" },
    run: merges("ModelMergeSimple"),
  }),
  defineNode({
    key: "ModelMergeBlocks",
    category: "advanced/model_merging",
    description: "Mixes the weights of two models block by block; each number is the share of the first.",
    inputs: { model1: changedModel(), model2: model(), input: share(1), middle: share(1), out: share(1) },
    outputs: { MODEL: "MODEL" },
    run: merges("ModelMergeBlocks"),
  }),
  defineNode({
    key: "ModelMergeAdd",
    category: "advanced/model_merging",
    description: "Adds the weights of two models.",
    inputs: { model1: changedModel(), model2: model() },
    outputs: { MODEL: "MODEL" },
    run: merges("ModelMergeAdd"),
  }),
  defineNode({
    key: "ModelMergeSubtract",
    category: "advanced/model_merging",
    description: "Subtracts the weights of the second model from those of the first.",
    inputs: {
      model1: changedModel(),
      model2: model(),
      multiplier: float({ default: 1, min: -10, max: 10, step: 0.01 }),
    },
    outputs: { MODEL: "MODEL" },
    run: merges("ModelMergeSubtract"),
  }),
] as const;
