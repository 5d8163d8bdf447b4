import { Tensor } from "../../../tensor/tensor.js";
import { sinusoids, timeEmbeddings } from "../networks/sinusoids.js";
import { changesIn, type FluxConfig } from "./config.js";

/** Factor of numbers before they are embedded. */
const FACTOR = 1000;

// one rounding an operation, as in the source
const factored = (value: number): number => Math.fround(Math.fround(value) * FACTOR);

/** Embeddings [n, 256] of noise levels, or of guidances. */
export const fluxEmbeddings = (values: readonly number[]): Tensor => timeEmbeddings(values.map(factored));

/**
 * Inputs [n, changes, inputs] of Chroma's approximator for noise levels: for each change the embedded level, a guidance of 0
 * and the number of the change.
 */
export function changeEmbeddings(
  levels: readonly number[],
  config: Pick<FluxConfig, "doubleBlocks" | "singleBlocks" | "approximator">,
): Tensor {
  const { inputs } = config.approximator!;
  const count = changesIn(config);
  const numbers = Array.from({ length: count }, (_, index) => sinusoids(factored(index), inputs / 2));
  const guidance = sinusoids(0, inputs / 4);
  const rows = levels.flatMap((level) => {
    const time = sinusoids(factored(level), inputs / 4);
    return numbers.flatMap((number) => [...time, ...guidance, ...number]);
  });
  return Tensor.from(rows, [levels.length, count, inputs]);
}
