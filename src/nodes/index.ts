import { coreNodes } from "./core/index.js";
import { ifNode } from "./ext/if.js";
import { imageToMask } from "./ext/image-to-mask.js";
import { injectNoiseToLatent } from "./ext/inject-noise-to-latent.js";
import { latentCompositeMaskedWithCond } from "./ext/latent-composite-masked-with-cond.js";
import { latentNoisy } from "./ext/latent-noisy.js";
import { pipeEdit, pipeLoader, pipeOut } from "./ext/pipe.js";
import { poseEditor } from "./ext/pose-editor.js";
import { remoteImageApi } from "./ext/remote-image-api.js";
import { saveImageLazy } from "./ext/save-image-lazy.js";
import { saveTextLazy } from "./ext/save-text-lazy.js";
import { showAnythingLazy, showSpentTime } from "./ext/show.js";
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
