import { cfgNorm } from "./cfg-norm.js";
import { cfgZeroStar } from "./cfg-zero-star.js";
import { differentialDiffusion } from "./differential-diffusion.js";
import { epsilonScaling } from "./epsilon-scaling.js";
import { perpNeg } from "./perp-neg.js";
import { renormCfg } from "./renorm-cfg.js";
import { rescaleCfg } from "./rescale-cfg.js";

export const guidanceNodes = [
  rescaleCfg,
  perpNeg,
  differentialDiffusion,
  epsilonScaling,
  cfgZeroStar,
  cfgNorm,
  renormCfg,
] as const;
