import { Tensor } from "latentkit";
import { seededInts } from "../seeded.js";

/** Repeatable values between -1 and 1. */
export function noiseTensor(shape: readonly number[], seed = 7): Tensor {
  const int = seededInts(seed);
  const out = Tensor.unfilled(shape);
  for (let i = 0; i < out.size; i++) out.data[i] = int(2 ** 24) / 2 ** 23 - 1;
  return out;
}
