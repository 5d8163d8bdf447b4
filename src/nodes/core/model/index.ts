import { freeU } from "./free-u.js";
import { freeUV2 } from "./free-u-v2.js";
import { hyperTile } from "./hyper-tile.js";
import { modelMergeAdd } from "./model-merge-add.js";
import { modelMergeBlocks } from "./model-merge-blocks.js";
import { modelMergeSimple } from "./model-merge-simple.js";
import { modelMergeSubtract } from "./model-merge-subtract.js";
import { patchModelAddDownscale } from "./patch-model-add-downscale.js";
import { perturbedAttentionGuidance } from "./perturbed-attention-guidance.js";
import { selfAttentionGuidance } from "./self-attention-guidance.js";
import { skipLayerGuidanceDit } from "./skip-layer-guidance-dit.js";
import { skipLayerGuidanceSd3 } from "./skip-layer-guidance-sd3.js";
import { tomePatchModel } from "./tome-patch-model.js";

export const modelNodes = [
  freeU,
  freeUV2,
  hyperTile,
  tomePatchModel,
  patchModelAddDownscale,
  perturbedAttentionGuidance,
  selfAttentionGuidance,
  skipLayerGuidanceSd3,
  skipLayerGuidanceDit,
  modelMergeSimple,
  modelMergeBlocks,
  modelMergeAdd,
  modelMergeSubtract,
] as const;
