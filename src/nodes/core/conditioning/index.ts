import { conditioningAverage } from "./conditioning-average.js";
import { conditioningCombine } from "./conditioning-combine.js";
import { conditioningConcat } from "./conditioning-concat.js";
import { conditioningSetArea } from "./conditioning-set-area.js";
import { conditioningSetAreaPercentage } from "./conditioning-set-area-percentage.js";
import { conditioningSetAreaStrength } from "./conditioning-set-area-strength.js";
import { conditioningSetMask } from "./conditioning-set-mask.js";
import { conditioningSetTimestepRange } from "./conditioning-set-timestep-range.js";
import { conditioningZeroOut } from "./conditioning-zero-out.js";
import { fluxDisableGuidance } from "./flux-disable-guidance.js";
import { fluxGuidance } from "./flux-guidance.js";
import { fluxKontextMultiReferenceLatentMethod } from "./flux-kontext-multi-reference-latent-method.js";
import { referenceLatent } from "./reference-latent.js";
import { unclipConditioning } from "./unclip-conditioning.js";

export const conditioningNodes = [
  conditioningAverage,
  conditioningCombine,
  conditioningConcat,
  conditioningSetArea,
  conditioningSetAreaPercentage,
  conditioningSetAreaStrength,
  conditioningSetMask,
  conditioningSetTimestepRange,
  conditioningZeroOut,
  unclipConditioning,
  fluxGuidance,
  fluxDisableGuidance,
  fluxKontextMultiReferenceLatentMethod,
  referenceLatent,
] as const;
