import type { Tensor } from "latentkit";
import { OnnxGraph } from "#src/host/checkpoint/onnx/graph.js";
import { CPU_TARGET, type Target } from "#src/host/checkpoint/onnx/target.js";
import { type Network, networkOf, type WeightChanges } from "#src/host/checkpoint/weights/network.js";
import { PackedWeights } from "#src/host/checkpoint/weights/packed/packed-weights.js";
import { withUnpacked } from "#src/host/checkpoint/weights/packed/unpack.js";
import type { WeightMap } from "#src/host/checkpoint/weights/stored.js";
import { type Feeds, graphSession } from "./session.js";

interface PackedGraphOptions {
  readonly changes?: WeightChanges;
  readonly target?: Target;
  readonly overridable?: boolean;
  readonly threads?: number;
}

/** Outputs of a graph over packed weights, which are unpacked in a folder. */
export async function computedFromPacked(
  folder: string,
  weights: WeightMap,
  build: (network: Network) => void,
  feeds: Feeds,
  { changes, target = CPU_TARGET, overridable = false, threads = 1 }: PackedGraphOptions = {},
): Promise<Record<string, Tensor>> {
  const graph = new OnnxGraph("packed", target);
  const packed = new PackedWeights(folder, folder);
  build(networkOf(graph, weights, { changes, packed }));
  const encoded = graph.encode({ overridable });
  const session = await withUnpacked(packed.plan, () => graphSession(encoded, { intraOpNumThreads: threads }));
  try {
    return await session.run(feeds);
  } finally {
    await session.release();
  }
}
