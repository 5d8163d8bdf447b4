/**
 * Relation of a model's latents to its VAE's: model = (vae - shift) * scale, or with figures for each channel
 * model = (vae - mean) * scale / deviation. Figures as published.
 */
export interface LatentFormat {
  readonly name: string;
  readonly scaleFactor: number;
  readonly shiftFactor: number;
  readonly channels: number;
  /** Pixels along a side of a cell, if it is known not to be 8. */
  readonly cell?: number;
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
  Flux2: Object.freeze({ ...format("Flux2", 1, 128), cell: 16 }),
  /** Latents of Wan 2.1 and Qwen-Image. */
  Wan21: Object.freeze({
    ...format("Wan21", 1, 16),
    statistics: {
      mean: [
        -0.7571, -0.7089, -0.9113, 0.1075, -0.1745, 0.9653, -0.1517, 1.5508, 0.4134, -0.0715, 0.5517, -0.3632, -0.1922,
        -0.9497, 0.2503, -0.2921,
      ],
      deviation: [
        2.8184, 1.4541, 2.3275, 2.6558, 1.2196, 1.7708, 2.6052, 2.0743, 3.2687, 2.1526, 2.8652, 1.5579, 1.6382, 1.1253,
        2.8251, 1.916,
      ],
    },
  }),
  SC_B: format("SC_B", 1 / 0.43, 4),
  SC_Prior: format("SC_Prior", 1, 16),
} as const;

/** rgb = latent * factors + bias, with the latent in the model's units and rgb in -1 … 1. */
export interface LatentRgb {
  readonly format: LatentFormat;
  /** One row [r, g, b] for each latent channel. */
  readonly factors: readonly (readonly [number, number, number])[];
  readonly bias: readonly [number, number, number];
}

/** Linear latent-to-RGB factors as published with the models of each format. */
export const LATENT_RGB: readonly LatentRgb[] = [
  {
    format: LATENT_FORMATS.SD15,
    factors: [
      [0.3512, 0.2297, 0.3227],
      [0.325, 0.4974, 0.235],
      [-0.2829, 0.1762, 0.2721],
      [-0.212, -0.2616, -0.7177],
    ],
    bias: [0, 0, 0],
  },
  {
    format: LATENT_FORMATS.SDXL,
    factors: [
      [0.3651, 0.4232, 0.4341],
      [-0.2533, -0.0042, 0.1068],
      [0.1076, 0.1111, -0.0362],
      [-0.3165, -0.2492, -0.2188],
    ],
    bias: [0.1084, -0.0175, -0.0011],
  },
  {
    format: LATENT_FORMATS.SD3,
    factors: [
      [-0.0922, -0.0175, 0.0749],
      [0.0311, 0.0633, 0.0954],
      [0.1994, 0.0927, 0.0458],
      [0.0856, 0.0339, 0.0902],
      [0.0587, 0.0272, -0.0496],
      [-0.0006, 0.1104, 0.0309],
      [0.0978, 0.0306, 0.0427],
      [-0.0042, 0.1038, 0.1358],
      [-0.0194, 0.002, 0.0669],
      [-0.0488, 0.013, -0.0268],
      [0.0922, 0.0988, 0.0951],
      [-0.0278, 0.0524, -0.0542],
      [0.0332, 0.0456, 0.0895],
      [-0.0069, -0.003, -0.081],
      [-0.0596, -0.0465, -0.0293],
      [-0.1448, -0.1463, -0.1189],
    ],
    bias: [0.2394, 0.2135, 0.1925],
  },
  {
    format: LATENT_FORMATS.Flux,
    factors: [
      [-0.0346, 0.0244, 0.0681],
      [0.0034, 0.021, 0.0687],
      [0.0275, -0.0668, -0.0433],
      [-0.0174, 0.016, 0.0617],
      [0.0859, 0.0721, 0.0329],
      [0.0004, 0.0383, 0.0115],
      [0.0405, 0.0861, 0.0915],
      [-0.0236, -0.0185, -0.0259],
      [-0.0245, 0.025, 0.118],
      [0.1008, 0.0755, -0.0421],
      [-0.0515, 0.0201, 0.0011],
      [0.0428, -0.0012, -0.0036],
      [0.0817, 0.0765, 0.0749],
      [-0.1264, -0.0522, -0.1103],
      [-0.028, -0.0881, -0.0499],
      [-0.1262, -0.0982, -0.0778],
    ],
    bias: [-0.0329, -0.0718, -0.0851],
  },
];
