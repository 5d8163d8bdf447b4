import { describePatch } from "../../../helpers/graph/patch-tests.js";

describePatch("FreeU", { b1: 1.2, b2: 1.3, s1: 0.8, s2: 0.1 });
describePatch("FreeU_V2", { b1: 1.2, b2: 1.3, s1: 0.8, s2: 0.1 });
describePatch("HyperTile", { tile_size: 128, swap_size: 3, max_depth: 1, scale_depth: true });
describePatch("TomePatchModel", { ratio: 0.4 }, { ratio: 0 });
describePatch("PatchModelAddDownscale", {
  block_number: 2,
  downscale_factor: 1.5,
  start_percent: 0.1,
  end_percent: 0.4,
  downscale_after_skip: false,
  downscale_method: "area",
  upscale_method: "bislerp",
});
describePatch("PerturbedAttentionGuidance", { scale: 2 }, { scale: 0 });
describePatch("SelfAttentionGuidance", { scale: -1, blur_sigma: 3 }, { scale: 0 });
describePatch("SkipLayerGuidanceSD3", { layers: "7", scale: 2, start_percent: 0.1, end_percent: 0.2 }, { scale: 0 });
describePatch("SkipLayerGuidanceDiT", {
  double_layers: "7",
  single_layers: "8",
  scale: 2,
  start_percent: 0.1,
  end_percent: 0.2,
  rescaling_scale: 0.5,
});
describePatch("ModelMergeSimple", { ratio: 0.25 }, { ratio: 1 });
describePatch("ModelMergeBlocks", { input: 0.25, middle: 0.5, out: 0.75 });
describePatch("ModelMergeAdd", {});
describePatch("ModelMergeSubtract", { multiplier: -0.5 });
