import { sin } from "../../../../native/elementary.js";
import { Tensor } from "../../../../tensor/tensor.js";
import { attention, conv, linear, tokensOf } from "../../networks/layers.js";
import type { EncodedGraph, Value } from "../../onnx/graph.js";
import type { Target } from "../../onnx/target.js";
import type { Feed } from "../../session/sessions.js";
import { buildTextEncoder, type TextEncoderConfig } from "../../text-encoder/build.js";
import { buildUnet, type UnetConfig } from "../../unet/build.js";
import { type ListedNetwork, listedNetwork } from "../../weights/network.js";
import { valuesIn } from "../../weights/stored.js";

/** A graph that a provider and the CPU compute for comparison. */
export interface Probe {
  readonly graph: EncodedGraph;
  readonly feeds: Readonly<Record<string, Feed>>;
}

/** Writes probes in the forms of a target; their weights are F16 if it takes these. */
export type MakeProbes = (target: Target) => readonly Probe[];

const BLOCK = { kind: "res", channels: 32, depth: 1 } as const;

/** A UNet with every kind of block, two levels deep. */
const UNET: UnetConfig = {
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

const TEXT_ENCODER: TextEncoderConfig = {
  name: "l",
  layout: "hf",
  hidden: 32,
  layers: 1,
  missing: 0,
  heads: 2,
  mlp: 64,
  vocabulary: 64,
  positions: 77,
  activation: "quick-gelu",
};

/** Sides and channels of the picture that measures a provider's speed. */
const SPEED = { side: 32, channels: 128, heads: 4 } as const;

/**
 * A text encoder and a small UNet, whose weights are inputs, with values of order 1. The attention of the UNet has 256
 * cells, and the 77 tokens of a prompt: a broken one was right on its first keys.
 */
export const comparedProbes: MakeProbes = (target) => [textEncoderProbe(target), unetProbe(target)];

function unetProbe(target: Target): Probe {
  const network = listedNetwork(target);
  buildUnet(network, UNET);
  return probeOf(network, {
    x: wave([2, UNET.inChannels, 16, 16], 1),
    timestep: Tensor.from([999, 20.5], [2]),
    context: wave([2, 77, UNET.contextDim], 1),
  });
}

function textEncoderProbe(target: Target): Probe {
  const network = listedNetwork(target);
  const { vocabulary, positions, hidden } = TEXT_ENCODER;
  buildTextEncoder(network, TEXT_ENCODER, { layer: -1, finalNorm: true });
  const int64 = Array.from({ length: positions }, (_, i) => (i * 7) % vocabulary);
  return probeOf(network, { tokens: { int64, shape: [1, positions] }, embeddings: wave([1, hidden], 1) });
}

/**
 * Convolutions, linear layers and attention of a size at which a GPU's start-up does not count. All sides are known: every
 * node can lie on the provider.
 */
export function speedProbe(target: Target): Probe {
  const network = listedNetwork(target);
  const { graph } = network;
  const { side, channels, heads } = SPEED;
  const same = [channels, channels] as const;
  const x = graph.input("x", "float", [1, channels, side, side]);
  const convolved = (key: string, from: Value): Value => conv(network, key, from, same, { kernel: 3 });
  const picture = convolved("conv2", convolved("conv1", x));
  const tokens = tokensOf(graph, picture);
  const [query, key, value] = ["q", "k", "v"].map((name) => linear(network, name, tokens, same));
  const attended = attention(graph, [query!, key!, value!], { heads, width: channels });
  graph.output(linear(network, "out", attended, same), "y", "float", [1, side * side, channels]);
  return probeOf(network, { x: wave([1, channels, side, side], 1) });
}

/** A network with values for its weights. */
function probeOf(network: ListedNetwork, inputs: Readonly<Record<string, Feed>>): Probe {
  const feeds: Record<string, Feed> = { ...inputs };
  for (const [key, shape] of network.listed) {
    if (shape.length === 1) feeds[key] = key.endsWith(".weight") ? Tensor.full(shape, 1) : wave(shape, 0.1);
    else {
      // linear layers and convolutions keep the size of their inputs
      const count = valuesIn(shape.slice(1));
      feeds[key] = wave(shape, Math.sqrt(2 / count));
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
