import { describe, LatentkitError } from "../../base/errors.js";
import { Tensor } from "../../tensor/tensor.js";
import type { Conditioning } from "../types.js";
import { sinusoids } from "./networks/sinusoids.js";

/** Width of the embedding of one number. */
const WIDTH = 256;
/** Pixels along a side of a latent's cell. */
const CELL = 8;
/** Scores that the refiner was trained to move towards and away from. */
const AESTHETIC_SCORES = { positive: 6, negative: 2.5 };

/** Everything that the label of an entry depends on. */
export interface LabelSource {
  readonly kind: "sdxl" | "sdxl-refiner";
  /** Rows and columns of the run's latent. */
  readonly cells: readonly [number, number];
  readonly isNegative: boolean;
}

/** The label of an SDXL network for one entry. */
export interface SizeLabel {
  /** Pooled text, [n, width]. */
  readonly pooled: Tensor;
  /** Sizes that its prompt names, height first: 6, for the refiner 5. */
  readonly numbers: readonly number[];
}

/**
 * The label of an SDXL network for one entry: its pooled text and sizes; `width` is that of both in one vector, where it
 * is known. Podell et al. 2023, "SDXL", section 2.2. Fails with value.invalid.
 */
export function sizeLabel([, options]: Conditioning[number], source: LabelSource, width?: number): SizeLabel {
  const numbers = source.kind === "sdxl" ? baseNumbers(options, source) : refinerNumbers(options, source);
  const pooledWidth = width === undefined ? undefined : width - numbers.length * WIDTH;
  const pooled = options.pooled_output;
  const isPooled = pooled instanceof Tensor && pooled.shape.length === 2 && pooled.shape[0]! > 0;
  if (!isPooled || pooled.shape[1] !== (pooledWidth ?? pooled.shape[1])) {
    const expected = `pooled_output [n, ${pooledWidth ?? "width"}], as SDXL's text encoders make it`;
    throw new LatentkitError("value.invalid", `conditioning: expected ${expected}, received ${describe(pooled)}.`);
  }
  return { pooled, numbers };
}

/** The label as one vector for each pooled text, in which each size is embedded: [n, width]. */
export function labelVectors({ pooled, numbers }: SizeLabel): Tensor {
  const sizes = Float32Array.from(numbers.flatMap((number) => sinusoids(number, WIDTH)));
  const [count, pooledWidth] = pooled.shape as [number, number];
  const width = pooledWidth + sizes.length;
  const vectors = Tensor.unfilled([count, width]);
  for (let item = 0; item < count; item++) {
    vectors.data.set(pooled.data.subarray(item * pooledWidth, (item + 1) * pooledWidth), item * width);
    vectors.data.set(sizes, item * width + pooledWidth);
  }
  return vectors;
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
