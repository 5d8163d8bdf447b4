import { checkpointLoader } from "./checkpoint-loader.js";
import { checkpointLoaderSimple } from "./checkpoint-loader-simple.js";
import { clipVisionLoader } from "./clip-vision-loader.js";
import { controlNetLoader } from "./controlnet-loader.js";
import { diffControlNetLoader } from "./diff-controlnet-loader.js";
import { gligenLoader } from "./gligen-loader.js";
import { imageOnlyCheckpointLoader } from "./image-only-checkpoint-loader.js";
import { modelPatchLoader } from "./model-patch-loader.js";
import { styleModelLoader } from "./style-model-loader.js";
import { unclipCheckpointLoader } from "./unclip-checkpoint-loader.js";
import { unetLoader } from "./unet-loader.js";
import { unetLoaderGguf } from "./unet-loader-gguf.js";
import { upscaleModelLoader } from "./upscale-model-loader.js";
import { vaeLoader } from "./vae-loader.js";

export const loaderNodes = [
  checkpointLoaderSimple,
  checkpointLoader,
  unclipCheckpointLoader,
  imageOnlyCheckpointLoader,
  unetLoader,
  unetLoaderGguf,
  vaeLoader,
  controlNetLoader,
  diffControlNetLoader,
  upscaleModelLoader,
  clipVisionLoader,
  styleModelLoader,
  gligenLoader,
  modelPatchLoader,
] as const;
