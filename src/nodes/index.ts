import { coreNodes } from "./core/index.js";
import { imageToMask, poseEditor, remoteImageApi } from "./ext/image.js";
import { injectNoiseToLatent, latentNoisy } from "./ext/noise.js";
import { latentCompositeMaskedWithCond, pipeEdit, pipeLoader, pipeOut } from "./ext/pipe.js";
import { saveImageLazy, saveTextLazy } from "./ext/save-files.js";
import { ifNode, showAnythingLazy, showSpentTime } from "./ext/values.js";
import { pictureNodes } from "./ipadapter/picture-nodes.js";
import { showNodes } from "./ipadapter/show-nodes.js";
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

/** Nodes of the pack ComfyUI_IPAdapter_plus, by the names of the lists as those of ComfyUI. */
const ipAdapterNodes: readonly [...typeof pictureNodes, ...typeof showNodes] = [...pictureNodes, ...showNodes];

export type BuiltInNode =
  | (typeof extNodes)[number]
  | (typeof coreNodes)[number]
  | (typeof pictureNodes)[number]
  | (typeof showNodes)[number];

/** Every node of the package. */
export const registry: Registry<BuiltInNode> = createRegistry([...extNodes, ...coreNodes, ...ipAdapterNodes]);
