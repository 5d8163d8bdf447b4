import { loadImage } from "./load-image.js";
import { loadImageMask } from "./load-image-mask.js";
import { maskPreview } from "./mask-preview.js";
import { previewImage } from "./preview-image.js";
import { saveImage } from "./save-image.js";

export const fileNodes = [loadImage, loadImageMask, maskPreview, previewImage, saveImage] as const;
