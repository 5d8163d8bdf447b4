import type { Tensor } from "../../../tensor/tensor.js";
import { FLOAT_BYTES, linear, silu, type Trace } from "../networks/layers.js";
import { TIME_EMBEDDING, timeEmbeddings } from "../networks/sinusoids.js";
import { joined, modulated, modulation, rmsNorm, rotationInputs, split } from "../networks/transformer-layers.js";
import type { Value } from "../onnx/graph.js";
import type { Network } from "../weights/network.js";
import {
  EPSILON,
  type PictureTimes,
  type QwenImageContext,
  type QwenImageSizes,
  type QwenImageStreams,
  qwenImageBlock,
} from "./block.js";
import { type QwenImageControl, qwenImageControl } from "./control.js";

/** Sizes of a Qwen-Image transformer. */
export interface QwenImageConfig extends QwenImageSizes {
  /** Numbers of a patch. */
  readonly inputs: number;
  /** Numbers of a text's token. */
  readonly contextWidth: number;
  readonly blocks: number;
  /** Whether references usually have the time 0, as those of Edit 2511. */
  readonly hasReferenceTime: boolean;
}

interface QwenImageOptions {
  /** Whether the patches after the first `count` have a time of their own. */
  readonly hasReferenceTime?: boolean;
  /** Control nets, whose inputs are `control_N` [B or 1, C, inputs], patches of the picture, and `strength_N` [1]. */
  readonly controls?: readonly QwenImageControl[];
  readonly trace?: Trace;
}

const TIME_FACTOR = 1000;
const TIME = "time_text_embed.timestep_embedder";

/** Embeddings [n, 256] of noise levels. */
export const qwenImageEmbeddings = (sigmas: readonly number[]): Tensor =>
  timeEmbeddings(sigmas.map(Math.fround), TIME_FACTOR);

/** Bytes of a run beside the weights, for each value of x and of context: those of a token in a block. */
export function qwenImageWork({ width, inputs, contextWidth }: QwenImageConfig): Readonly<Record<string, number>> {
  const ofToken = FLOAT_BYTES * 9 * width;
  return { x: ofToken / inputs, context: ofToken / contextWidth };
}

/**
 * Writes a Qwen-Image transformer. Inputs: x [B, L, inputs], patches of the latent in model units, then those of references;
 * time [B, 256], as qwenImageEmbeddings makes it of noise levels; context [B, S, contextWidth]; `joint_cos` and `joint_sin`
 * [S + L, headSize / 2], the rotations of the text's tokens and then of the patches; with times of references
 * `reference_time` [B, 256] and `count` int64 [1], the number of patches before them. Output: out [B, L, inputs], the
 * velocity. Throws model.invalid for weights that are absent or have other shapes. Source: Wu et al. 2025, "Qwen-Image", by
 * the facts of its files.
 */
export function buildQwenImage(
  network: Network,
  config: QwenImageConfig,
  { hasReferenceTime = false, controls = [], trace = () => {} }: QwenImageOptions = {},
): void {
  const { graph } = network;
  const { inputs, width, headSize, contextWidth, blocks } = config;
  const x = graph.input("x", "float", ["B", "L", inputs]);
  const embedding = graph.input("time", "float", ["B", TIME_EMBEDDING]);
  const { time, pictureTimes } = timesOf(network, config, embedding, hasReferenceTime);
  trace("time_text_embed", time);
  const texts = graph.input("context", "float", ["B", "S", contextWidth]);
  const rotation = rotationInputs(graph, "joint", "T", headSize, "neighbours");
  const context: QwenImageContext = { network, sizes: config, rotation, time, pictureTimes, trace };
  const normal = rmsNorm(network, "txt_norm.weight", texts, contextWidth, EPSILON);
  let streams: QwenImageStreams = {
    img: linear(network, "img_in", x, [inputs, width]),
    txt: linear(network, "txt_in", normal, [contextWidth, width]),
  };
  trace("img_in", streams.img);
  trace("txt_in", streams.txt);
  const branches = controls.map((control, index) =>
    qwenImageControl(control, {
      tokens: graph.input(`control_${index}`, "float", ["controls", "C", inputs]),
      strength: graph.input(`strength_${index}`, "float", [1]),
    }),
  );
  for (let index = 0; index < blocks; index++) {
    const { txt, img } = qwenImageBlock(context, `transformer_blocks.${index}`, streams);
    streams = { txt, img: branches.reduce((tokens, branch) => branch(index, tokens), img) };
  }
  const change = modulation(network, "norm_out.linear", time, [width, 2]);
  const [scale, shift] = split(graph, change, [width, width]);
  const last = modulated(graph, streams.img, width, { shift: shift!, scale: scale! });
  trace("norm_out", last);
  graph.output(linear(network, "proj_out", last, [width, inputs]), "out", "float", ["B", "L", inputs]);
}

/** The embedded time, and those of the picture's tokens. */
function timesOf(
  network: Network,
  { width }: QwenImageConfig,
  embedding: Value,
  hasReferenceTime: boolean,
): { readonly time: Value; readonly pictureTimes: PictureTimes } {
  const { graph } = network;
  const embedded = (value: Value): Value => {
    const hidden = linear(network, `${TIME}.linear_1`, value, [TIME_EMBEDDING, width]);
    return linear(network, `${TIME}.linear_2`, silu(graph, hidden), [width, width]);
  };
  if (!hasReferenceTime) {
    const time = embedded(embedding);
    return { time, pictureTimes: { all: time } };
  }
  // in one product, since weights are large and times few
  const both = embedded(joined(graph, [embedding, graph.input("reference_time", "float", ["B", TIME_EMBEDDING])], 0));
  const [time] = graph.nodeWithOutputs("Split", [both], 2, { axis: { int: 0 }, num_outputs: { int: 2 } });
  return { time: time!, pictureTimes: { both, count: graph.input("count", "int64", [1]) } };
}
