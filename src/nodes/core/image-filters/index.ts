import { canny } from "./canny.js";
import { imageAddNoise } from "./image-add-noise.js";
import { imageBlend } from "./image-blend.js";
import { imageBlur } from "./image-blur.js";
import { imageFlip } from "./image-flip.js";
import { imageInvert } from "./image-invert.js";
import { imageQuantize } from "./image-quantize.js";
import { imageRgbToYuv } from "./image-rgb-to-yuv.js";
import { imageRotate } from "./image-rotate.js";
import { imageSharpen } from "./image-sharpen.js";
import { imageYuvToRgb } from "./image-yuv-to-rgb.js";
import { morphology } from "./morphology.js";

export const imageFilterNodes = [
  canny,
  imageAddNoise,
  imageBlend,
  imageBlur,
  imageFlip,
  imageInvert,
  imageQuantize,
  imageRgbToYuv,
  imageRotate,
  imageSharpen,
  imageYuvToRgb,
  morphology,
] as const;
