import { modelSamplingAuraFlow } from "./model-sampling-aura-flow.js";
import { modelSamplingContinuousEdm } from "./model-sampling-continuous-edm.js";
import { modelSamplingContinuousV } from "./model-sampling-continuous-v.js";
import { modelSamplingDiscrete } from "./model-sampling-discrete.js";
import { modelSamplingFlux } from "./model-sampling-flux.js";
import { modelSamplingSd3 } from "./model-sampling-sd3.js";
import { modelSamplingStableCascade } from "./model-sampling-stable-cascade.js";

export const modelSamplingNodes = [
  modelSamplingDiscrete,
  modelSamplingContinuousEdm,
  modelSamplingContinuousV,
  modelSamplingSd3,
  modelSamplingAuraFlow,
  modelSamplingFlux,
  modelSamplingStableCascade,
] as const;
