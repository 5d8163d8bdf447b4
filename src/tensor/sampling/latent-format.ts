/** Relation of a model's latents to its VAE's: model = (vae - shift) * scale. Figures as published. */
export interface LatentFormat {
  readonly name: string;
  readonly scaleFactor: number;
  readonly shiftFactor: number;
  readonly channels: number;
}

const format = (name: string, scaleFactor: number, channels: number, shiftFactor = 0): LatentFormat =>
  Object.freeze({ name, scaleFactor, shiftFactor, channels });

export const LATENT_FORMATS = {
  SD15: format("SD15", 0.18215, 4),
  SDXL: format("SDXL", 0.13025, 4),
  SDXL_Playground_2_5: format("SDXL_Playground_2_5", 0.5, 4),
  SD3: format("SD3", 1.5305, 16, 0.0609),
  Flux: format("Flux", 0.3611, 16, 0.1159),
  SC_B: format("SC_B", 1 / 0.43, 4),
  SC_Prior: format("SC_Prior", 1, 16),
} as const;
