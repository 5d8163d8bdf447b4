import { adapterNodes } from "./adapters/index.js";
import { clipLoaderNodes } from "./clip-loaders/index.js";
import { conditioningNodes } from "./conditioning/index.js";
import { controlNodes } from "./control/index.js";
import { emptyLatentNodes } from "./empty-latents/index.js";
import { fileNodes } from "./files/index.js";
import { guidanceNodes } from "./guidance/index.js";
import { guiderNodes } from "./guiders/index.js";
import { imageNodes } from "./image/index.js";
import { imageFilterNodes } from "./image-filters/index.js";
import { latentNodes } from "./latent/index.js";
import { latentBatchNodes } from "./latent-batch/index.js";
import { loaderNodes } from "./loaders/index.js";
import { maskNodes } from "./mask/index.js";
import { modelNodes } from "./model/index.js";
import { modelSamplingNodes } from "./model-sampling/index.js";
import { samplerNodes } from "./samplers/index.js";
import { samplingNodes } from "./sampling/index.js";
import { schedulerNodes } from "./schedulers/index.js";
import { sigmaNodes } from "./sigmas/index.js";
import { textNodes } from "./text/index.js";
import { vaeNodes } from "./vae/index.js";
import { valueNodes } from "./values/index.js";

/** By the names of the groups: declarations would repeat the types of all inputs otherwise. */
type CoreNodes = readonly [
  ...typeof loaderNodes,
  ...typeof clipLoaderNodes,
  ...typeof adapterNodes,
  ...typeof textNodes,
  ...typeof conditioningNodes,
  ...typeof controlNodes,
  ...typeof emptyLatentNodes,
  ...typeof latentNodes,
  ...typeof latentBatchNodes,
  ...typeof maskNodes,
  ...typeof imageNodes,
  ...typeof imageFilterNodes,
  ...typeof fileNodes,
  ...typeof vaeNodes,
  ...typeof samplingNodes,
  ...typeof schedulerNodes,
  ...typeof sigmaNodes,
  ...typeof samplerNodes,
  ...typeof guiderNodes,
  ...typeof modelSamplingNodes,
  ...typeof guidanceNodes,
  ...typeof modelNodes,
  ...typeof valueNodes,
];

/** ComfyUI's nodes. */
export const coreNodes: CoreNodes = [
  ...loaderNodes,
  ...clipLoaderNodes,
  ...adapterNodes,
  ...textNodes,
  ...conditioningNodes,
  ...controlNodes,
  ...emptyLatentNodes,
  ...latentNodes,
  ...latentBatchNodes,
  ...maskNodes,
  ...imageNodes,
  ...imageFilterNodes,
  ...fileNodes,
  ...vaeNodes,
  ...samplingNodes,
  ...schedulerNodes,
  ...sigmaNodes,
  ...samplerNodes,
  ...guiderNodes,
  ...modelSamplingNodes,
  ...guidanceNodes,
  ...modelNodes,
  ...valueNodes,
];
