import { Tensor } from "latentkit";

/** A picture [channels, height, width] in double precision. */
export interface Picture {
  readonly channels: number;
  readonly height: number;
  readonly width: number;
  readonly data: Float64Array;
}

/** Values of a weight by its key. */
export type Weights = (key: string) => ArrayLike<number>;

/** The only picture of a tensor [1, channels, height, width]. */
export function pictureOf(tensor: Tensor): Picture {
  const [, channels, height, width] = tensor.shape as [number, number, number, number];
  return { channels, height, width, data: Float64Array.from(tensor.data) };
}

export const tensorOf = ({ channels, height, width, data }: Picture): Tensor =>
  Tensor.from(Float32Array.from(data), [1, channels, height, width]);

interface ConvOptions {
  readonly kernel?: number;
  readonly stride?: number;
  /** Zeros at each side: half a kernel; `[0, 1]` is none before and one after. */
  readonly pads?: readonly [number, number];
  readonly bias?: boolean;
}

/** A convolution, one multiplication after another. */
export function conv(
  weights: Weights,
  key: string,
  x: Picture,
  channels: number,
  { kernel = 3, stride = 1, pads = [(kernel - 1) / 2, (kernel - 1) / 2], bias = true }: ConvOptions = {},
): Picture {
  const weight = weights(`${key}.weight`);
  const offsets = bias ? weights(`${key}.bias`) : undefined;
  const side = (length: number): number => Math.floor((length + pads[0] + pads[1] - kernel) / stride) + 1;
  const [height, width] = [side(x.height), side(x.width)];
  const data = new Float64Array(channels * height * width);
  for (let out = 0; out < channels; out++)
    for (let row = 0; row < height; row++)
      for (let column = 0; column < width; column++) {
        let sum = offsets?.[out] ?? 0;
        for (let input = 0; input < x.channels; input++)
          for (let i = 0; i < kernel; i++) {
            const from = row * stride + i - pads[0];
            if (from < 0 || from >= x.height) continue;
            for (let j = 0; j < kernel; j++) {
              const at = column * stride + j - pads[0];
              if (at < 0 || at >= x.width) continue;
              sum +=
                weight[((out * x.channels + input) * kernel + i) * kernel + j]! *
                x.data[(input * x.height + from) * x.width + at]!;
            }
          }
        data[(out * height + row) * width + column] = sum;
      }
  return { channels, height, width, data };
}

export const map = (x: Picture, change: (value: number, index: number) => number): Picture => ({
  ...x,
  data: x.data.map(change),
});

export const relu = (x: Picture): Picture => map(x, (value) => Math.max(0, value));
export const leakyRelu = (x: Picture): Picture => map(x, (value) => (value < 0 ? 0.2 * value : value));
export const silu = (x: Picture): Picture => map(x, (value) => value / (1 + Math.exp(-value)));
export const add = (a: Picture, b: Picture, factor = 1): Picture => map(a, (value, i) => value + factor * b.data[i]!);

/** Every cell `factor` times in each direction. */
export function enlarged(x: Picture, factor: number): Picture {
  const [height, width] = [x.height * factor, x.width * factor];
  const data = new Float64Array(x.channels * height * width);
  for (let i = 0; i < data.length; i++) {
    const [channel, row, column] = [Math.floor(i / (height * width)), Math.floor(i / width) % height, i % width];
    data[i] = x.data[(channel * x.height + Math.floor(row / factor)) * x.width + Math.floor(column / factor)]!;
  }
  return { channels: x.channels, height, width, data };
}

/** Channels of all pictures, in order. */
export function joined(pictures: readonly Picture[]): Picture {
  const data = Float64Array.from(pictures.flatMap((each) => [...each.data]));
  return { ...pictures[0]!, channels: pictures.reduce((sum, { channels }) => sum + channels, 0), data };
}

/** Normalisation in 32 groups of channels. */
export function groupNorm(weights: Weights, key: string, x: Picture, epsilon: number): Picture {
  const [weight, bias] = [weights(`${key}.weight`), weights(`${key}.bias`)];
  const cells = x.height * x.width;
  const size = (x.channels / 32) * cells;
  const data = new Float64Array(x.data.length);
  for (let from = 0; from < data.length; from += size) {
    const values = x.data.subarray(from, from + size);
    const mean = values.reduce((sum, value) => sum + value, 0) / size;
    const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / size;
    for (let i = from; i < from + size; i++) {
      const channel = Math.floor(i / cells);
      data[i] = ((x.data[i]! - mean) / Math.sqrt(variance + epsilon)) * weight[channel]! + bias[channel]!;
    }
  }
  return { ...x, data };
}

/** Attention of every cell to all cells, with one head. */
export function attend(query: Picture, key: Picture, value: Picture): Picture {
  const cells = query.height * query.width;
  const { channels } = query;
  const data = new Float64Array(channels * cells);
  for (let cell = 0; cell < cells; cell++) {
    const scores = Array.from({ length: cells }, (_, other) => {
      let score = 0;
      for (let c = 0; c < channels; c++) score += query.data[c * cells + cell]! * key.data[c * cells + other]!;
      return score / Math.sqrt(channels);
    });
    const most = Math.max(...scores);
    const shares = scores.map((score) => Math.exp(score - most));
    const total = shares.reduce((sum, share) => sum + share, 0);
    for (let c = 0; c < channels; c++)
      for (let other = 0; other < cells; other++)
        data[c * cells + cell]! += (shares[other]! / total) * value.data[c * cells + other]!;
  }
  return { ...query, data };
}
