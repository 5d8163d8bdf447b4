import { Tensor } from "../../../tensor/tensor.js";

/** A copy of the sigmas from one index to before another; negative ones count from the end. */
export function part(sigmas: Tensor, from?: number, to?: number): Tensor {
  const values = sigmas.data.slice(from, to);
  return Tensor.from(values, [values.length]);
}
