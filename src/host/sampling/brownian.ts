import { LatentkitError } from "../../base/errors.js";
import type { Tensor } from "../../tensor/tensor.js";

/** Noise of one Brownian path over all noise levels. */
export function brownianNoise(
  _seed: bigint,
  _sigmas: Float32Array,
  _shape: readonly number[],
): (sigma: number, next: number) => Tensor {
  throw new LatentkitError("value.invalid", "sampler: expected one without Brownian noise.");
}
