import { loadImage } from "./load-image.js";
import { loadImageMask } from "./load-image-mask.js";
import { loadLatent } from "./load-latent.js";
import { maskPreview } from "./mask-preview.js";
import { previewImage } from "./preview-image.js";
import { saveImage } from "./save-image.js";
import { saveImageWebsocket } from "./save-image-websocket.js";
import { saveLatent } from "./save-latent.js";

export const fileNodes = [
  loadImage,
  loadImageMask,
  loadLatent,
  maskPreview,
  previewImage,
  saveImage,
  saveLatent,
  saveImageWebsocket,
] as const;
