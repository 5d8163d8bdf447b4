import { cropMask } from "./crop-mask.js";
import { featherMask } from "./feather-mask.js";
import { growMask } from "./grow-mask.js";
import { imageColorToMask } from "./image-color-to-mask.js";
import { imageToMask } from "./image-to-mask.js";
import { invertMask } from "./invert-mask.js";
import { joinImageWithAlpha } from "./join-image-with-alpha.js";
import { maskComposite } from "./mask-composite.js";
import { maskToImage } from "./mask-to-image.js";
import { porterDuffImageComposite } from "./porter-duff-image-composite.js";
import { solidMask } from "./solid-mask.js";
import { splitImageWithAlpha } from "./split-image-with-alpha.js";
import { thresholdMask } from "./threshold-mask.js";

export const maskNodes = [
  cropMask,
  featherMask,
  growMask,
  imageColorToMask,
  imageToMask,
  invertMask,
  joinImageWithAlpha,
  maskComposite,
  maskToImage,
  porterDuffImageComposite,
  solidMask,
  splitImageWithAlpha,
  thresholdMask,
] as const;
