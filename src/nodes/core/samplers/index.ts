import { kSamplerSelect } from "./ksampler-select.js";

export const samplerNodes = [kSamplerSelect] as const;
