import { imageScale } from "./image-scale.js";
import { imageScaleBy } from "./image-scale-by.js";
import { imageScaleToMaxDimension } from "./image-scale-to-max-dimension.js";
import { imageScaleToTotalPixels } from "./image-scale-to-total-pixels.js";

export const imageNodes = [imageScale, imageScaleBy, imageScaleToTotalPixels, imageScaleToMaxDimension] as const;
