/**
 * Relation of a model's latents to its VAE's: model = (vae - shift) * scale, or with figures for each channel
 * model = (vae - mean) * scale / deviation. Figures as published.
 */
export interface LatentFormat {
  readonly name: string;
  readonly scaleFactor: number;
  readonly shiftFactor: number;
  readonly channels: number;
  /** Mean and standard deviation of each channel of the VAE's latents. */
  readonly statistics?: { readonly mean: readonly number[]; readonly deviation: readonly number[] };
}

const format = (name: string, scaleFactor: number, channels: number, shiftFactor = 0): LatentFormat =>
  Object.freeze({ name, scaleFactor, shiftFactor, channels });

export const LATENT_FORMATS = {
  SD15: format("SD15", 0.18215, 4),
  SDXL: format("SDXL", 0.13025, 4),
  SDXL_Playground_2_5: Object.freeze({
    ...format("SDXL_Playground_2_5", 0.5, 4),
    statistics: { mean: [-1.6574, 1.886, -1.383, 2.5155], deviation: [8.4927, 5.9022, 6.5498, 5.2299] },
  }),
  SD3: format("SD3", 1.5305, 16, 0.0609),
  Flux: format("Flux", 0.3611, 16, 0.1159),
  SC_B: format("SC_B", 1 / 0.43, 4),
  SC_Prior: format("SC_Prior", 1, 16),
} as const;
