import { describe, LatentkitError } from "../../base/errors.js";
import { cos, sin } from "../../native/elementary.js";
import { Tensor } from "../../tensor/tensor.js";
import type { Conditioning } from "../types.js";
import { embeddingFrequencies } from "./networks/layers.js";

/** Width of the embedding of one number. */
const WIDTH = 256;
/** Pixels along a side of a latent's cell. */
const CELL = 8;
/** Scores that the refiner was trained to move towards and away from. */
const AESTHETIC_SCORES = { positive: 6, negative: 2.5 };

/** Everything that the label of an entry depends on. */
export interface LabelSource {
  readonly kind: "sdxl" | "sdxl-refiner";
  /** Width of the label that the network takes. */
  readonly width: number;
  /** Rows and columns of the run's latent. */
  readonly cells: readonly [number, number];
  readonly isNegative: boolean;
}

/**
 * The label [n, width] of an SDXL network for one entry: its pooled text, and embeddings of the sizes that its prompt
 * names, height first. Podell et al. 2023, "SDXL", section 2.2. Fails with value.invalid.
 */
export function sizeLabel([, options]: Conditioning[number], source: LabelSource): Tensor {
  const numbers = source.kind === "sdxl" ? baseNumbers(options, source) : refinerNumbers(options, source);
  const pooledWidth = source.width - numbers.length * WIDTH;
  const pooled = options.pooled_output;
  if (!(pooled instanceof Tensor) || pooled.shape.length !== 2 || pooled.shape[1] !== pooledWidth) {
    const expected = `pooled_output [n, ${pooledWidth}], as SDXL's text encoders make it`;
    throw new LatentkitError("value.invalid", `conditioning: expected ${expected}, received ${describe(pooled)}.`);
  }
  const sizes = Float32Array.from(numbers.flatMap(embedding));
  const count = pooled.shape[0]!;
  const label = Tensor.unfilled([count, source.width]);
  for (let item = 0; item < count; item++) {
    label.data.set(pooled.data.subarray(item * pooledWidth, (item + 1) * pooledWidth), item * source.width);
    label.data.set(sizes, item * source.width + pooledWidth);
  }
  return label;
}

function baseNumbers(options: Record<string, unknown>, { cells }: LabelSource): number[] {
  const [height, width] = sizeOf(options, cells);
  return [
    height,
    width,
    numberOf(options, "crop_h", 0),
    numberOf(options, "crop_w", 0),
    numberOf(options, "target_height", height),
    numberOf(options, "target_width", width),
  ];
}

function refinerNumbers(options: Record<string, unknown>, { cells, isNegative }: LabelSource): number[] {
  const score = isNegative ? AESTHETIC_SCORES.negative : AESTHETIC_SCORES.positive;
  return [
    ...sizeOf(options, cells),
    numberOf(options, "crop_h", 0),
    numberOf(options, "crop_w", 0),
    numberOf(options, "aesthetic_score", score),
  ];
}

const sizeOf = (options: Record<string, unknown>, [rows, columns]: readonly [number, number]): [number, number] => [
  numberOf(options, "height", rows * CELL),
  numberOf(options, "width", columns * CELL),
];

function numberOf(options: Record<string, unknown>, name: string, absent: number): number {
  const value = options[name] ?? absent;
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw new LatentkitError("value.invalid", `conditioning, ${name}: expected a number, received ${describe(value)}.`);
}

/** Cosines, then sines, of a number at falling frequencies: Vaswani et al. 2017. */
function embedding(value: number): number[] {
  const angles = Array.from(embeddingFrequencies(WIDTH / 2), (frequency) => Math.fround(value * frequency));
  return [...angles.map(cos), ...angles.map(sin)];
}
