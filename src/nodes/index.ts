import { coreNodes } from "./core/index.js";
import { imageToMask, poseEditor, remoteImageApi } from "./ext/image.js";
import { injectNoiseToLatent, latentNoisy } from "./ext/noise.js";
import { latentCompositeMaskedWithCond, pipeEdit, pipeLoader, pipeOut } from "./ext/pipe.js";
import { saveImageLazy, saveTextLazy } from "./ext/save-files.js";
import { ifNode, showAnythingLazy, showSpentTime } from "./ext/values.js";
import { createRegistry, type Registry } from "./registry.js";

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

export type BuiltInNode = (typeof extNodes)[number] | (typeof coreNodes)[number];

/** Every node of the package. */
export const registry: Registry<BuiltInNode> = createRegistry([...extNodes, ...coreNodes]);
