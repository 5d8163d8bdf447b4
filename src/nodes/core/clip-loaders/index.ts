import { clipLoader } from "./clip-loader.js";
import { dualClipLoader } from "./dual-clip-loader.js";
import { quadrupleClipLoader } from "./quadruple-clip-loader.js";
import { tripleClipLoader } from "./triple-clip-loader.js";

export const clipLoaderNodes = [clipLoader, dualClipLoader, tripleClipLoader, quadrupleClipLoader] as const;
