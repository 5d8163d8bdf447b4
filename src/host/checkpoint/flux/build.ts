import { FLOAT_BYTES, linear, type Trace } from "../networks/layers.js";
import { joined, lengthOf, modulated, parted, rotationInputs } from "../networks/transformer-layers.js";
import type { Value } from "../onnx/graph.js";
import type { Network } from "../weights/network.js";
import { type BlockContext, doubleBlock, type Streams, singleBlock } from "./blocks.js";
import { FLUX_KINDS, type FluxConfig } from "./config.js";
import { modulationsOf } from "./modulations.js";

/**
 * Bytes of a run beside the weights, for each value of x and of context: those of a token in a block of one stream, where
 * the product of its first layer and the parts of it exist at once.
 */
export function fluxWork({ kind, width, mlp, inputs, contextWidth }: FluxConfig): Readonly<Record<string, number>> {
  const isGated = FLUX_KINDS[kind].mlp === "gated";
  const ofToken = FLOAT_BYTES * (isGated ? 10 * width + 4 * mlp : 8 * width + 2 * mlp);
  return { x: ofToken / inputs, context: ofToken / contextWidth };
}

/**
 * Writes a transformer of Flux's blocks. Inputs: x [B, L, inputs], patches of the latent in model units, then those of
 * references; time [B, 256], as fluxEmbeddings makes it of noise levels, in Chroma [B, changes, inputs of its approximator],
 * as changeEmbeddings makes it; context [B, S, contextWidth]; y [B, pooledWidth],
 * zeros for none, if it takes one; `joint_cos` and `joint_sin` [S + L, headSize / 2], the rotations of the text's tokens and
 * then of the patches; with guidance `guidance` [B, 256], embedded too, and `guided` [B], 1 for an item that takes it and 0
 * for one that does not. Output: out [B, L, outputs], the velocity.
 * Throws model.invalid for weights that are absent or have other shapes. Source: Flux, by the facts of its files.
 */
export function buildFlux(network: Network, config: FluxConfig, trace: Trace = () => {}): void {
  const { graph } = network;
  const { kind, inputs, outputs, width, headSize, contextWidth } = config;
  const { bias } = FLUX_KINDS[kind];
  const x = graph.input("x", "float", ["B", "L", inputs]);
  const modulations = modulationsOf(network, config, trace);
  const context = graph.input("context", "float", ["B", "S", contextWidth]);
  const rotation = rotationInputs(graph, "joint", "T", headSize, "neighbours");
  const inside: BlockContext = { network, sizes: config, rotation, trace };
  let streams: Streams<Value> = {
    img: linear(network, "img_in", x, [inputs, width], { bias }),
    txt: linear(network, "txt_in", context, [contextWidth, width], { bias }),
  };
  trace("img_in", streams.img);
  trace("txt_in", streams.txt);
  for (let index = 0; index < config.doubleBlocks; index++)
    streams = doubleBlock(inside, `double_blocks.${index}`, streams, modulations.double(index));
  let joint = joined(graph, [streams.txt, streams.img], 1);
  for (let index = 0; index < config.singleBlocks; index++)
    joint = singleBlock(inside, `single_blocks.${index}`, joint, modulations.single(index));
  const [, patches] = parted(graph, joint, lengthOf(graph, streams.txt));
  const last = modulated(graph, patches, width, modulations.last());
  const out = linear(network, "final_layer.linear", last, [width, outputs], { bias });
  trace("final_layer", out);
  graph.output(out, "out", "float", ["B", "L", outputs]);
}
