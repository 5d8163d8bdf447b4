import { add, linear, silu, type Trace } from "../networks/layers.js";
import { TIME_EMBEDDING } from "../networks/sinusoids.js";
import { modulation, rmsNorm, split } from "../networks/transformer-layers.js";
import type { Value } from "../onnx/graph.js";
import type { Network } from "../weights/network.js";
import type { Modulation, Streams } from "./blocks.js";
import { changesIn, FLUX_KINDS, type FluxConfig } from "./config.js";

/** Changes of a stream in a double block: for its attention, then for its MLP. */
type Pair = readonly [Modulation, Modulation];

/** Changes of tokens in each block, and before the last layer. */
export interface Modulations {
  double(index: number): Streams<Pair>;
  single(index: number): Modulation;
  last(): Omit<Modulation, "gate">;
}

/** Declares the inputs `time`, `guidance`, `guided` and `y` that a model has, and makes the changes of them. */
export function modulationsOf(network: Network, config: FluxConfig, trace: Trace): Modulations {
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
