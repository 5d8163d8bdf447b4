import { loadImage } from "./load-image.js";
import { loadImageMask } from "./load-image-mask.js";
import { previewImage } from "./preview-image.js";
import { saveImage } from "./save-image.js";

export const fileNodes = [loadImage, loadImageMask, previewImage, saveImage] as const;
