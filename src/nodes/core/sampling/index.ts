import { addNoise } from "./add-noise.js";
import { disableNoise } from "./disable-noise.js";
import { kSampler } from "./ksampler.js";
import { kSamplerAdvanced } from "./ksampler-advanced.js";
import { randomNoise } from "./random-noise.js";
import { samplerCustom } from "./sampler-custom.js";
import { samplerCustomAdvanced } from "./sampler-custom-advanced.js";

export const samplingNodes = [
  kSampler,
  kSamplerAdvanced,
  samplerCustom,
  samplerCustomAdvanced,
  randomNoise,
  disableNoise,
  addNoise,
] as const;
