import type { Tensor } from "latentkit";
import { OnnxGraph } from "#src/host/checkpoint/onnx/graph.js";
import { type Network, networkOf } from "#src/host/checkpoint/weights/network.js";
import type { WeightMap } from "#src/host/checkpoint/weights/stored.js";
import { type Feeds, graphSession } from "./session.js";

/** Builds a network over the weights of a file, runs it once for each set of inputs, and returns the outputs. */
export async function runBuilt(
  weights: WeightMap,
  build: (network: Network) => void,
  ...inputs: readonly Feeds[]
): Promise<Record<string, Tensor>[]> {
  const graph = new OnnxGraph("test");
  build(networkOf(graph, weights));
  const session = await graphSession(graph.encode({ overridable: true }));
  const outputs: Record<string, Tensor>[] = [];
  for (const feeds of inputs) outputs.push(await session.run(feeds));
  await session.release();
  return outputs;
}
