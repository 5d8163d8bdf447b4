import { listedNetwork, type Network } from "#src/host/checkpoint/weights/network.js";
import { seededInts } from "../seeded.js";
import { f32, type RawTensor } from "./weight-file.js";

/** Random weights of every layer that a builder asks for, about 1 / sqrt(inputs), so that outputs stay near 1. */
export function randomWeights(build: (network: Network) => void, seed = 1): Record<string, RawTensor> {
  const network = listedNetwork();
  build(network);
  const int = seededInts(seed);
  const tensors: Record<string, RawTensor> = {};
  for (const [key, shape] of network.listed) {
    const size = shape.reduce((product, side) => product * side, 1);
    const width = shape.length === 1 ? 0.3 : Math.sqrt(3 / (size / shape[0]!));
    tensors[key] = f32(
      shape,
      Array.from({ length: size }, () => (int(2 ** 24) / 2 ** 23 - 1) * width),
    );
  }
  return tensors;
}

/** The float32 values of a tensor. */
export const valuesOf = ({ bytes }: RawTensor): Float32Array => new Float32Array(bytes.slice().buffer);
