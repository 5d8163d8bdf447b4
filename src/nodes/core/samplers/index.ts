import { kSamplerSelect } from "./ksampler-select.js";
import { samplerDpmAdaptative } from "./sampler-dpm-adaptative.js";
import { samplerDpmpp2mSde } from "./sampler-dpmpp-2m-sde.js";
import { samplerDpmpp2sAncestral } from "./sampler-dpmpp-2s-ancestral.js";
import { samplerDpmpp3mSde } from "./sampler-dpmpp-3m-sde.js";
import { samplerDpmppSde } from "./sampler-dpmpp-sde.js";
import { samplerErSde } from "./sampler-er-sde.js";
import { samplerEulerAncestral } from "./sampler-euler-ancestral.js";
import { samplerEulerAncestralCfgPp } from "./sampler-euler-ancestral-cfg-pp.js";
import { samplerEulerCfgPp } from "./sampler-euler-cfg-pp.js";
import { samplerLms } from "./sampler-lms.js";
import { samplerSaSolver } from "./sampler-sa-solver.js";
import { samplerSeeds2 } from "./sampler-seeds-2.js";

export const samplerNodes = [
  kSamplerSelect,
  samplerEulerAncestral,
  samplerEulerAncestralCfgPp,
  samplerDpmpp2sAncestral,
  samplerDpmppSde,
  samplerDpmpp3mSde,
  samplerDpmpp2mSde,
  samplerLms,
  samplerDpmAdaptative,
  samplerErSde,
  samplerSaSolver,
  samplerSeeds2,
  samplerEulerCfgPp,
] as const;
