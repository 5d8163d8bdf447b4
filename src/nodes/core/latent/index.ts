import { emptyLatentImage } from "./empty-latent-image.js";

export const latentNodes = [emptyLatentImage] as const;
