import { emptyImage } from "./empty-image.js";
import { fluxKontextImageScale } from "./flux-kontext-image-scale.js";
import { getImageSize } from "./get-image-size.js";
import { imageBatch } from "./image-batch.js";
import { imageCompositeMasked } from "./image-composite-masked.js";
import { imageCrop } from "./image-crop.js";
import { imageFromBatch } from "./image-from-batch.js";
import { imagePadForOutpaint } from "./image-pad-for-outpaint.js";
import { imageScale } from "./image-scale.js";
import { imageScaleBy } from "./image-scale-by.js";
import { imageScaleToMaxDimension } from "./image-scale-to-max-dimension.js";
import { imageScaleToTotalPixels } from "./image-scale-to-total-pixels.js";
import { imageStitch } from "./image-stitch.js";
import { repeatImageBatch } from "./repeat-image-batch.js";

export const imageNodes = [
  emptyImage,
  getImageSize,
  imageBatch,
  imageCompositeMasked,
  imageCrop,
  imageFromBatch,
  imagePadForOutpaint,
  imageScaleBy,
  imageScaleToMaxDimension,
  imageScaleToTotalPixels,
  imageScale,
  repeatImageBatch,
  fluxKontextImageScale,
  imageStitch,
] as const;
