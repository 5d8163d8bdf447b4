import { clipLoaderNodes } from "./core/clip-loaders.js";
import { conditioningNodes } from "./core/conditioning.js";
import { controlNodes } from "./core/control.js";
import { guidanceNodes } from "./core/guidance.js";
import { imageNodes } from "./core/image.js";
import { imageFilterNodes } from "./core/image-filters.js";
import { emptyLatentNodes, latentNodes } from "./core/latent.js";
import { latentBatchNodes } from "./core/latent-batch.js";
import { fileLoaderNodes } from "./core/load-files.js";
import { adapterNodes, loaderNodes } from "./core/loaders.js";
import { maskNodes } from "./core/mask.js";
import { modelNodes } from "./core/model.js";
import { modelSamplingNodes } from "./core/model-sampling.js";
import { guiderNodes, samplerNodes } from "./core/samplers.js";
import { samplingNodes } from "./core/sampling.js";
import { fileSaverNodes } from "./core/save-files.js";
import { imageScaleNodes, latentScaleNodes } from "./core/scale.js";
import { schedulerNodes } from "./core/schedulers.js";
import { sigmaNodes } from "./core/sigmas.js";
import { textNodes } from "./core/text.js";
import { vaeNodes } from "./core/vae.js";
import { valueNodes } from "./core/values.js";
import { imageToMask, poseEditor, remoteImageApi } from "./ext/image.js";
import { injectNoiseToLatent, latentNoisy } from "./ext/noise.js";
import { latentCompositeMaskedWithCond, pipeEdit, pipeLoader, pipeOut } from "./ext/pipe.js";
import { saveImageLazy, saveTextLazy } from "./ext/save-files.js";
import { ifNode, showAnythingLazy, showSpentTime } from "./ext/values.js";
import { pictureNodes } from "./ipadapter/picture-nodes.js";
import { showNodes } from "./ipadapter/show-nodes.js";
import { createRegistry, type Registry } from "./registry.js";

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
const coreNodes: CoreNodes = [
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

/** Nodes of old workflows: one entry for each. */
const extNodes = [
  ifNode,
  poseEditor,
  imageToMask,
  showSpentTime,
  latentNoisy,
  latentCompositeMaskedWithCond,
  injectNoiseToLatent,
  remoteImageApi,
  saveImageLazy,
  saveTextLazy,
  showAnythingLazy,
  pipeLoader,
  pipeOut,
  pipeEdit,
] as const;

/** Nodes of the pack ComfyUI_IPAdapter_plus, by the names of the lists as those of ComfyUI. */
const ipAdapterNodes: readonly [...typeof pictureNodes, ...typeof showNodes] = [...pictureNodes, ...showNodes];

export type BuiltInNode =
  | (typeof extNodes)[number]
  | (typeof coreNodes)[number]
  | (typeof pictureNodes)[number]
  | (typeof showNodes)[number];

/** Every node of the package. */
export const registry: Registry<BuiltInNode> = createRegistry([...extNodes, ...coreNodes, ...ipAdapterNodes]);
