import { latentAdd } from "./latent-add.js";
import { latentBlend } from "./latent-blend.js";
import { latentComposite } from "./latent-composite.js";
import { latentCompositeMasked } from "./latent-composite-masked.js";
import { latentCrop } from "./latent-crop.js";
import { latentFlip } from "./latent-flip.js";
import { latentInterpolate } from "./latent-interpolate.js";
import { latentMultiply } from "./latent-multiply.js";
import { latentRotate } from "./latent-rotate.js";
import { latentSubtract } from "./latent-subtract.js";
import { latentUpscale } from "./latent-upscale.js";
import { latentUpscaleBy } from "./latent-upscale-by.js";

export const latentNodes = [
  latentAdd,
  latentBlend,
  latentCompositeMasked,
  latentComposite,
  latentCrop,
  latentFlip,
  latentInterpolate,
  latentMultiply,
  latentRotate,
  latentSubtract,
  latentUpscaleBy,
  latentUpscale,
] as const;
