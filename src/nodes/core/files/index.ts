import { loadImage } from "./load-image.js";
import { loadImageMask } from "./load-image-mask.js";
import { loadLatent } from "./load-latent.js";
import { previewImage } from "./preview-image.js";
import { saveImage } from "./save-image.js";
import { saveLatent } from "./save-latent.js";

export const fileNodes = [loadImage, loadImageMask, loadLatent, previewImage, saveImage, saveLatent] as const;
