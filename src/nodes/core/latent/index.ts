import { emptyLatentImage } from "./empty-latent-image.js";
import { latentUpscale } from "./latent-upscale.js";
import { latentUpscaleBy } from "./latent-upscale-by.js";

export const latentNodes = [emptyLatentImage, latentUpscale, latentUpscaleBy] as const;
