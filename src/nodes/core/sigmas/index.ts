import { extendIntermediateSigmas } from "./extend-intermediate-sigmas.js";
import { flipSigmas } from "./flip-sigmas.js";
import { manualSigmas } from "./manual-sigmas.js";
import { samplingPercentToSigma } from "./sampling-percent-to-sigma.js";
import { setFirstSigma } from "./set-first-sigma.js";
import { splitSigmas } from "./split-sigmas.js";
import { splitSigmasDenoise } from "./split-sigmas-denoise.js";

export const sigmaNodes = [
  splitSigmas,
  splitSigmasDenoise,
  flipSigmas,
  setFirstSigma,
  extendIntermediateSigmas,
  samplingPercentToSigma,
  manualSigmas,
] as const;
