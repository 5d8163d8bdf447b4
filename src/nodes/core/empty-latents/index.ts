import { emptyFlux2LatentImage } from "./empty-flux2-latent-image.js";
import { emptyLatentImage } from "./empty-latent-image.js";
import { emptySd3LatentImage } from "./empty-sd3-latent-image.js";

export const emptyLatentNodes = [emptyLatentImage, emptySd3LatentImage, emptyFlux2LatentImage] as const;
