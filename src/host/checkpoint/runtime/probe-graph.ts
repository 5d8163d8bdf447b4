import { sin } from "../../../native/elementary.js";
import { Tensor } from "../../../tensor/tensor.js";
import { buildUnet, type UnetConfig } from "../networks/unet.js";
import type { EncodedGraph } from "../onnx/graph.js";
import { CPU_TARGET } from "../onnx/target.js";
import { listedNetwork } from "../weights/network.js";

/** A graph that a provider and the CPU compute for comparison. */
export interface ProviderProbe {
  readonly graph: EncodedGraph;
  readonly feeds: Readonly<Record<string, Tensor>>;
}

const BLOCK = { kind: "res", channels: 64, depth: 1 } as const;

/** A UNet with every kind of block, two levels deep. */
const CONFIG: UnetConfig = {
  inChannels: 4,
  outChannels: 4,
  modelChannels: BLOCK.channels,
  contextDim: 32,
  linearProjection: true,
  heads: { size: 16 },
  input: [{ ...BLOCK, kind: "conv", depth: 0 }, BLOCK, { ...BLOCK, kind: "down", depth: 0 }, BLOCK],
  middle: BLOCK,
  output: [false, true, false, false].map((upsample) => ({ ...BLOCK, upsample })),
};

/**
 * A small UNet whose weights are inputs, with values of order 1. Its attention has 256 cells, and the 77 tokens of a
 * prompt: a broken one was right on its first keys.
 */
export function probeGraph(target = CPU_TARGET): ProviderProbe {
  const network = listedNetwork(target);
  buildUnet(network, CONFIG);
  const feeds: Record<string, Tensor> = {
    x: wave([2, CONFIG.inChannels, 16, 16], 1),
    timestep: Tensor.from([999, 20.5], [2]),
    context: wave([2, 77, CONFIG.contextDim], 1),
  };
  for (const [key, shape] of network.listed) {
    if (shape.length === 1) feeds[key] = key.endsWith(".weight") ? Tensor.full(shape, 1) : wave(shape, 0.1);
    else {
      // linear layers and convolutions keep the size of their inputs
      const inputs = shape.slice(1).reduce((product, side) => product * side, 1);
      feeds[key] = wave(shape, Math.sqrt(2 / inputs));
    }
  }
  return { graph: network.graph.encode({ overridable: false }), feeds };
}

/** Values that repeat nowhere, between -size and size. */
function wave(shape: readonly number[], size: number): Tensor {
  const tensor = Tensor.zeros(shape);
  for (let i = 0; i < tensor.size; i++) tensor.data[i] = size * sin(i * i * 0.37 + i);
  return tensor;
}
