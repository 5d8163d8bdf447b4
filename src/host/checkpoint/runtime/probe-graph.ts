import { Tensor } from "../../../tensor/tensor.js";
import { attention, conv, groupNorm, layerNorm, linear, silu, toPicture, toTokens } from "../networks/layers.js";
import type { EncodedGraph } from "../onnx/graph.js";
import { listedNetwork } from "../weights/network.js";

/** A graph that a provider and the CPU compute for comparison. */
export interface ProviderProbe {
  readonly graph: EncodedGraph;
  readonly feeds: Readonly<Record<string, Tensor>>;
}

const CHANNELS = 64;
const HEADS = 4;
const SIDE = 16;
const EPSILON = 1e-5;

/**
 * One block of a UNet on a picture [1, 64, 16, 16]: convolution, norms, self-attention of 256 tokens, linear layers. Its
 * weights are inputs; values are of order 1.
 */
export function probeGraph(): ProviderProbe {
  const network = listedNetwork();
  const { graph, listed } = network;
  const x = graph.input("x", "float", [1, CHANNELS, SIDE, SIDE]);
  const normal = silu(graph, groupNorm(network, "norm", x, CHANNELS, EPSILON));
  const picture = conv(network, "conv", normal, [CHANNELS, CHANNELS], { kernel: 3 });
  const tokens = layerNorm(network, "token_norm", toTokens(graph, picture), CHANNELS);
  const [query, key, value] = ["query", "key", "value"].map((name) =>
    linear(network, name, tokens, [CHANNELS, CHANNELS]),
  );
  const attended = attention(graph, [query!, key!, value!], HEADS);
  graph.output(toPicture(graph, attended, CHANNELS, x), "out", "float", [1, CHANNELS, SIDE, SIDE]);
  const feeds: Record<string, Tensor> = { x: wave([1, CHANNELS, SIDE, SIDE], 1) };
  for (const [name, shape] of listed) {
    // linear and convolution weights keep the size of their inputs
    const inputs = shape.slice(1).reduce((product, side) => product * side, 1);
    feeds[name] = wave(shape, Math.sqrt(2 / inputs));
  }
  return { graph: graph.encode({ overridable: false }), feeds };
}

/** Values that repeat nowhere, between -size and size. */
function wave(shape: readonly number[], size: number): Tensor {
  const tensor = Tensor.zeros(shape);
  for (let i = 0; i < tensor.size; i++) tensor.data[i] = size * Math.sin(i * i * 0.37 + i);
  return tensor;
}
