import { inpaintModelConditioning } from "./inpaint-model-conditioning.js";
import { instructPixToPixConditioning } from "./instruct-pix-to-pix-conditioning.js";
import { setLatentNoiseMask } from "./set-latent-noise-mask.js";
import { vaeDecode } from "./vae-decode.js";
import { vaeDecodeTiled } from "./vae-decode-tiled.js";
import { vaeEncode } from "./vae-encode.js";
import { vaeEncodeForInpaint } from "./vae-encode-for-inpaint.js";
import { vaeEncodeTiled } from "./vae-encode-tiled.js";

export const vaeNodes = [
  inpaintModelConditioning,
  instructPixToPixConditioning,
  setLatentNoiseMask,
  vaeDecode,
  vaeDecodeTiled,
  vaeEncode,
  vaeEncodeForInpaint,
  vaeEncodeTiled,
] as const;
