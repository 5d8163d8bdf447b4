import { clipSetLastLayer } from "./clip-set-last-layer.js";
import { clipTextEncode } from "./clip-text-encode.js";
import { clipTextEncodeSdxl } from "./clip-text-encode-sdxl.js";
import { clipTextEncodeSdxlRefiner } from "./clip-text-encode-sdxl-refiner.js";

export const textNodes = [clipSetLastLayer, clipTextEncode, clipTextEncodeSdxl, clipTextEncodeSdxlRefiner] as const;
