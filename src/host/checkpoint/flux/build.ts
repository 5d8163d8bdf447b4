import { add, FLOAT_BYTES, linear, silu, type Trace } from "../networks/layers.js";
import { TIME_EMBEDDING } from "../networks/sinusoids.js";
import {
  joined,
  lengthOf,
  modulated,
  modulation,
  parted,
  rmsNorm,
  rotationInputs,
  split,
} from "../networks/transformer-layers.js";
import type { Value } from "../onnx/graph.js";
import type { Network } from "../weights/network.js";
import { type BlockContext, doubleBlock, type Modulation, type Streams, singleBlock } from "./blocks.js";
import { changesIn, FLUX_KINDS, type FluxConfig } from "./config.js";

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

/** Changes of a stream in a double block: for its attention, then for its MLP. */
type Pair = readonly [Modulation, Modulation];

/** Changes of tokens in each block, and before the last layer. */
interface Modulations {
  double(index: number): Streams<Pair>;
  single(index: number): Modulation;
  last(): Omit<Modulation, "gate">;
}

/** Declares the inputs `time`, `guidance`, `guided` and `y` that a model has, and makes the changes of them. */
function modulationsOf(network: Network, config: FluxConfig, trace: Trace): Modulations {
  const { modulations } = FLUX_KINDS[config.kind];
  if (modulations === "approximator") return approximated(network, config, trace);
  const vector = vectorOf(network, config, trace);
  const { width } = config;
  const { bias } = FLUX_KINDS[config.kind];
  const made = (key: string, count: number): readonly Value[] => {
    const all = modulation(network, key, vector, [width, count], bias);
    trace(key, all);
    return split(network.graph, all, new Array<number>(count).fill(width));
  };
  const both = (keyOf: (stream: "img" | "txt") => string): Streams<Pair> => ({
    img: pairOf(made(keyOf("img"), 6)),
    txt: pairOf(made(keyOf("txt"), 6)),
  });
  const last = (): Omit<Modulation, "gate"> => changeOf(made("final_layer.adaLN_modulation.1", 2));
  if (modulations === "own")
    return {
      double: (index) => both((stream) => `double_blocks.${index}.${stream}_mod.lin`),
      single: (index) => changeOf(made(`single_blocks.${index}.modulation.lin`, 3)),
      last,
    };
  const inDouble = both((stream) => `double_stream_modulation_${stream}.lin`);
  const inSingle = changeOf(made("single_stream_modulation.lin", 3));
  return { double: () => inDouble, single: () => inSingle, last };
}

function changeOf([shift, scale, gate]: readonly Value[]): Modulation {
  return { shift: shift!, scale: scale!, gate: gate! };
}

const pairOf = (parts: readonly Value[]): Pair => [changeOf(parts), changeOf(parts.slice(3))];

/** Time, guidance and pooled text as one vector [B, width]. */
function vectorOf(network: Network, { kind, width, pooledWidth, hasGuidance }: FluxConfig, trace: Trace): Value {
  const { graph } = network;
  const { bias } = FLUX_KINDS[kind];
  const embedded = (name: string): Value => graph.input(name, "float", ["B", TIME_EMBEDDING]);
  const layers = (name: string, x: Value, size: number): Value => {
    const hidden = linear(network, `${name}.in_layer`, x, [size, width], { bias });
    const out = linear(network, `${name}.out_layer`, silu(graph, hidden), [width, width], { bias });
    trace(name, out);
    return out;
  };
  let vector = layers("time_in", embedded("time"), TIME_EMBEDDING);
  if (hasGuidance) {
    const guidance = layers("guidance_in", embedded("guidance"), TIME_EMBEDDING);
    const guided = graph.node("Unsqueeze", [graph.input("guided", "float", ["B"]), graph.ints([1])]);
    vector = add(graph, vector, graph.node("Mul", [guidance, guided]));
  }
  if (pooledWidth === 0) return vector;
  return add(graph, vector, layers("vector_in", graph.input("y", "float", ["B", pooledWidth]), pooledWidth));
}

const APPROXIMATOR = "distilled_guidance_layer";
const EPSILON = 1e-6;

/** The changes that Chroma's approximator makes of `time`: those of single blocks, of the pictures' streams, of the texts'. */
function approximated(network: Network, config: FluxConfig, trace: Trace): Modulations {
  const { graph } = network;
  const { width: outputs, doubleBlocks, singleBlocks } = config;
  const { inputs, width, layers } = config.approximator!;
  const count = changesIn(config);
  const few = (key: string, x: Value, sides: readonly [number, number]): Value =>
    linear(network, `${APPROXIMATOR}.${key}`, x, sides);
  let x = few("in_proj", graph.input("time", "float", ["B", count, inputs]), [inputs, width]);
  for (let index = 0; index < layers; index++) {
    const normal = rmsNorm(network, `${APPROXIMATOR}.norms.${index}.scale`, x, width, EPSILON);
    const hidden = silu(graph, few(`layers.${index}.in_layer`, normal, [width, width]));
    x = add(graph, x, few(`layers.${index}.out_layer`, hidden, [width, width]));
  }
  const all = few("out_proj", x, [width, outputs]);
  trace(APPROXIMATOR, all);
  // not Split: its program has a buffer for each part, and a GPU allows few
  const from = (start: number, parts: number): Value[] =>
    Array.from({ length: parts }, (_, index) =>
      graph.node("Gather", [all, graph.ints([start + index])], { axis: { int: 1 } }),
    );
  const pictures = 3 * singleBlocks;
  const texts = pictures + 6 * doubleBlocks;
  return {
    double: (index) => ({
      img: pairOf(from(pictures + 6 * index, 6)),
      txt: pairOf(from(texts + 6 * index, 6)),
    }),
    single: (index) => changeOf(from(3 * index, 3)),
    last: () => changeOf(from(count - 2, 2)),
  };
}
