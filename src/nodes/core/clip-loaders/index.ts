import { clipLoader } from "./clip-loader.js";
import { clipLoaderGguf } from "./clip-loader-gguf.js";
import { dualClipLoader } from "./dual-clip-loader.js";
import { dualClipLoaderGguf } from "./dual-clip-loader-gguf.js";
import { quadrupleClipLoader } from "./quadruple-clip-loader.js";
import { tripleClipLoader } from "./triple-clip-loader.js";

export const clipLoaderNodes = [
  clipLoader,
  dualClipLoader,
  tripleClipLoader,
  quadrupleClipLoader,
  clipLoaderGguf,
  dualClipLoaderGguf,
] as const;
