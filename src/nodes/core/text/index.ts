import { clipTextEncode } from "./clip-text-encode.js";

export const textNodes = [clipTextEncode] as const;
