import type { Tensor } from "../../../../tensor/tensor.js";
import type { Value } from "../../onnx/graph.js";
import type { Network } from "../../weights/network.js";
import { add, FLOAT_BYTES, linear, linearOfFew, silu } from "../layers.js";
import { TIME_EMBEDDING, timeEmbeddings } from "../sinusoids.js";
import { joined, modulation, rotationInputs, split } from "../transformer-layers.js";
import {
  after,
  type BlockContext,
  doubleBlock,
  lengthOf,
  type Modulation,
  modulated,
  type StreamSizes,
  type Streams,
  singleBlock,
  type Trace,
} from "./blocks.js";

/** Sizes of a Flux.1 transformer. */
export interface FluxConfig extends StreamSizes {
  /** Numbers of a patch that it takes: 64 of the latent, Fill and Control have more. */
  readonly inputs: number;
  /** Numbers of a patch that it makes. */
  readonly outputs: number;
  /** Numbers of a text's token. */
  readonly contextWidth: number;
  /** Numbers of the pooled text. */
  readonly pooledWidth: number;
  readonly doubleBlocks: number;
  readonly singleBlocks: number;
  /** Whether it takes a guidance, as schnell does not. */
  readonly hasGuidance: boolean;
}

/** Factor of a time and a guidance before they are embedded. */
const TIME_FACTOR = 1000;

/** Bytes of a run beside the weights, for each value of x and of context: those of a token in a block of one stream. */
export function fluxWork({ width, inputs, contextWidth }: FluxConfig): Readonly<Record<string, number>> {
  const ofToken = FLOAT_BYTES * 16 * width;
  return { x: ofToken / inputs, context: ofToken / contextWidth };
}

/**
 * Writes a Flux.1 transformer. Inputs: x [B, L, inputs], patches of the latent in model units, then those of references;
 * time [B, 256], as fluxEmbeddings makes it of noise levels; context [B, S, contextWidth]; y [B, pooledWidth], zeros for
 * none; `joint_cos` and `joint_sin` [S + L, headSize / 2], the rotations of the text's tokens and then of the patches; with
 * guidance `guidance` [B, 256], embedded too, and `guided` [B], 1 for an item that takes it and 0 for one that does not.
 * Output: out [B, L, outputs], the velocity.
 * Throws model.invalid for weights that are absent or have other shapes. Source: Flux, by the facts of its files.
 */
export function buildFlux(network: Network, config: FluxConfig, trace: Trace = () => {}): void {
  const { graph } = network;
  const { inputs, outputs, width, headSize, contextWidth } = config;
  const x = graph.input("x", "float", ["B", "L", inputs]);
  const vector = vectorOf(network, config, trace);
  const context = graph.input("context", "float", ["B", "S", contextWidth]);
  const rotation = rotationInputs(graph, "joint", "T", headSize, "neighbours");
  const inside: BlockContext = { network, sizes: config, rotation, trace };
  let streams: Streams<Value> = {
    img: linear(network, "img_in", x, [inputs, width]),
    txt: linear(network, "txt_in", context, [contextWidth, width]),
  };
  trace("img_in", streams.img);
  trace("txt_in", streams.txt);
  const changes = (key: string, count: number): Modulation[] => {
    const all = modulation(network, key, vector, width, 3 * count);
    trace(key, all);
    const parts = split(graph, all, new Array<number>(3 * count).fill(width));
    return Array.from({ length: count }, (_, i) => {
      const [shift, scale, gate] = parts.slice(3 * i);
      return { shift: shift!, scale: scale!, gate: gate! };
    });
  };
  for (let index = 0; index < config.doubleBlocks; index++) {
    const key = `double_blocks.${index}`;
    const both = (name: string) => changes(`${key}.${name}_mod.lin`, 2) as [Modulation, Modulation];
    streams = doubleBlock(inside, key, streams, { img: both("img"), txt: both("txt") });
  }
  let joint = joined(graph, [streams.txt, streams.img], 1);
  for (let index = 0; index < config.singleBlocks; index++) {
    const key = `single_blocks.${index}`;
    joint = singleBlock(inside, key, joint, changes(`${key}.modulation.lin`, 1)[0]!);
  }
  const patches = after(graph, joint, lengthOf(graph, streams.txt));
  const change = modulation(network, "final_layer.adaLN_modulation.1", vector, width, 2);
  const [shift, scale] = split(graph, change, [width, width]);
  const last = modulated(graph, patches, width, { shift: shift!, scale: scale! });
  const out = linear(network, "final_layer.linear", last, [width, outputs]);
  trace("final_layer", out);
  graph.output(out, "out", "float", ["B", "L", outputs]);
}

/** Embeddings [n, 256] of noise levels, or of guidances. */
export const fluxEmbeddings = (values: readonly number[]): Tensor =>
  // one rounding an operation, as in the source
  timeEmbeddings(values.map((value) => Math.fround(Math.fround(value) * TIME_FACTOR)));

/** Time, guidance and pooled text as one vector [B, width]. */
function vectorOf(network: Network, { width, pooledWidth, hasGuidance }: FluxConfig, trace: Trace): Value {
  const { graph } = network;
  const embedded = (name: string): Value => graph.input(name, "float", ["B", TIME_EMBEDDING]);
  const layers = (name: string, x: Value, size: number): Value => {
    const hidden = linearOfFew(network, `${name}.in_layer`, x, 2, [size, width]);
    const out = linearOfFew(network, `${name}.out_layer`, silu(graph, hidden), 2, [width, width]);
    trace(name, out);
    return out;
  };
  let vector = layers("time_in", embedded("time"), TIME_EMBEDDING);
  if (hasGuidance) {
    const guidance = layers("guidance_in", embedded("guidance"), TIME_EMBEDDING);
    const guided = graph.node("Unsqueeze", [graph.input("guided", "float", ["B"]), graph.ints([1])]);
    vector = add(graph, vector, graph.node("Mul", [guidance, guided]));
  }
  return add(graph, vector, layers("vector_in", graph.input("y", "float", ["B", pooledWidth]), pooledWidth));
}
