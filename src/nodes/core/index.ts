import { adapterNodes } from "./adapters.js";
import { clipLoaderNodes } from "./clip-loaders.js";
import { conditioningNodes } from "./conditioning.js";
import { controlNodes } from "./control.js";
import { emptyLatentNodes } from "./empty-latents.js";
import { guidanceNodes } from "./guidance.js";
import { guiderNodes } from "./guiders.js";
import { imageNodes } from "./image.js";
import { imageFilterNodes } from "./image-filters.js";
import { latentNodes } from "./latent.js";
import { latentBatchNodes } from "./latent-batch.js";
import { fileLoaderNodes } from "./load-files.js";
import { loaderNodes } from "./loaders.js";
import { maskNodes } from "./mask.js";
import { modelNodes } from "./model.js";
import { modelSamplingNodes } from "./model-sampling.js";
import { samplerNodes } from "./samplers.js";
import { samplingNodes } from "./sampling.js";
import { fileSaverNodes } from "./save-files.js";
import { imageScaleNodes, latentScaleNodes } from "./scale.js";
import { schedulerNodes } from "./schedulers.js";
import { sigmaNodes } from "./sigmas.js";
import { textNodes } from "./text.js";
import { vaeNodes } from "./vae.js";
import { valueNodes } from "./values.js";

/** By the names of the lists: declarations would repeat the types of all inputs otherwise. */
type CoreNodes = readonly [
  ...typeof loaderNodes,
  ...typeof clipLoaderNodes,
  ...typeof adapterNodes,
  ...typeof textNodes,
  ...typeof conditioningNodes,
  ...typeof controlNodes,
  ...typeof emptyLatentNodes,
  ...typeof latentNodes,
  ...typeof latentScaleNodes,
  ...typeof latentBatchNodes,
  ...typeof maskNodes,
  ...typeof imageNodes,
  ...typeof imageScaleNodes,
  ...typeof imageFilterNodes,
  ...typeof fileLoaderNodes,
  ...typeof fileSaverNodes,
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
  ...latentScaleNodes,
  ...latentBatchNodes,
  ...maskNodes,
  ...imageNodes,
  ...imageScaleNodes,
  ...imageFilterNodes,
  ...fileLoaderNodes,
  ...fileSaverNodes,
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
