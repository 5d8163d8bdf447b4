import { clipSetLastLayer } from "./clip-set-last-layer.js";
import { clipTextEncode } from "./clip-text-encode.js";
import { clipTextEncodeFlux } from "./clip-text-encode-flux.js";
import { clipTextEncodeHiDream } from "./clip-text-encode-hidream.js";
import { clipTextEncodeSd3 } from "./clip-text-encode-sd3.js";
import { clipTextEncodeSdxl } from "./clip-text-encode-sdxl.js";
import { clipTextEncodeSdxlRefiner } from "./clip-text-encode-sdxl-refiner.js";
import { t5TokenizerOptions } from "./t5-tokenizer-options.js";
import { textEncodeQwenImageEdit } from "./text-encode-qwen-image-edit.js";
import { textEncodeQwenImageEditPlus } from "./text-encode-qwen-image-edit-plus.js";

export const textNodes = [
  clipSetLastLayer,
  clipTextEncode,
  clipTextEncodeSdxl,
  clipTextEncodeSdxlRefiner,
  clipTextEncodeFlux,
  clipTextEncodeHiDream,
  clipTextEncodeSd3,
  t5TokenizerOptions,
  textEncodeQwenImageEdit,
  textEncodeQwenImageEditPlus,
] as const;
