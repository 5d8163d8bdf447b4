import { vaeDecode } from "./vae-decode.js";
import { vaeEncode } from "./vae-encode.js";

export const vaeNodes = [vaeDecode, vaeEncode] as const;
