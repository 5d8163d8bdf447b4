import { describe, LatentkitError } from "../../../base/errors.js";
import { Tensor } from "../../../tensor/tensor.js";
import type { Clip, Conditioning } from "../../types.js";
import { add, causalMask, FLOAT_BYTES, linear, type Trace } from "../networks/layers.js";
import { rotationTables } from "../networks/sinusoids.js";
import {
  groupedAttention,
  headNorm,
  joined,
  type Rotation,
  rmsNorm,
  rotated,
  rotationInputs,
  swiGlu,
} from "../networks/transformer-layers.js";
import type { Value } from "../onnx/graph.js";
import { below, type ModelHeader, type Part, PartShapes } from "../recognition/part.js";
import type { ModelPart } from "../session/model-part.js";
import type { Runtime } from "../session/runtime.js";
import { tokenizeZImage } from "../tokenizer/qwen.js";
import type { Network } from "../weights/network.js";
import { unsupported, type WeightMap } from "../weights/stored.js";

const THETA = 1_000_000;
/** Eight times the longest prompt that Z-Image was trained with. The mask grows with the square of the length. */
const MOST_TOKENS = 4096;

/** How a family has Qwen3 read a prompt. */
export interface Qwen3Reading {
  /** Layers whose inputs, side by side, are the context; absent: the last. */
  readonly states?: readonly number[];
  /** Fewest tokens: padding at the end, to which no token attends. */
  readonly fewest: number;
  tokenize(text: string): number[];
}

const Z_IMAGE: Qwen3Reading = { fewest: 0, tokenize: tokenizeZImage };
/** Text that ends a document. */
const PAD = 151_643;

/** A clip of a Qwen3 language model, whose graph is built over the weights of a file. It reads a prompt whole. */
export class Qwen3Clip implements Clip {
  readonly encoders = [];

  constructor(
    readonly runtime: Runtime,
    readonly part: ModelPart<Qwen3Config>,
    readonly reading: Qwen3Reading = Z_IMAGE,
  ) {}

  async encodeText(text: string): Promise<Conditioning> {
    const { config, label } = this.part;
    const { states, fewest, tokenize } = this.reading;
    const tokens = tokenize(text.replace(/\\([()])/g, "$1"));
    const count = tokens.length;
    if (count > MOST_TOKENS) {
      const message = `${label}: expected a prompt of at most ${MOST_TOKENS} tokens, received ${count}: ${describe(text)}.`;
      throw new LatentkitError("value.out-of-range", message);
    }
    while (tokens.length < fewest) tokens.push(PAD);
    const { length } = tokens;
    const positions = Array.from({ length }, (_, at) => [at]);
    const { cos, sin } = rotationTables(positions, [config.headSize], THETA);
    const feeds = {
      tokens: { int64: tokens, shape: [1, length] },
      mask: Tensor.from(causalMask(length, count), [1, 1, length, length]),
      text_cos: cos,
      text_sin: sin,
    };
    const work = qwen3Work(this.part.config);
    const build = (network: Network): void => buildQwen3(network, config, undefined, states);
    const { cond } = await this.runtime.run(this.part.session("text encoder Qwen3", build, { work }), feeds, {
      isShared: true,
    });
    return [[cond!, {}]];
  }
}

/** Sizes of a Qwen3 language model. */
export interface Qwen3Config {
  readonly hidden: number;
  /** Layers of the file; the last one is not run. */
  readonly layers: number;
  readonly heads: number;
  /** Heads of keys and values. */
  readonly groups: number;
  readonly headSize: number;
  readonly mlp: number;
  readonly vocabulary: number;
}

/** Bytes of a run beside the weights, for each value of an input: those of a token in an MLP, and of scores. */
const qwen3Work = ({ hidden, mlp, heads }: Qwen3Config): { readonly tokens: number; readonly mask: number } => ({
  tokens: FLOAT_BYTES * (3 * mlp + 8 * hidden),
  mask: FLOAT_BYTES * 3 * heads,
});

const EPSILON = 1e-6;
/** Parts in which queries are processed if attention is written out. */
const PARTS = 1;

/**
 * Writes a Qwen3 text encoder. Inputs: `tokens` int64 [B, S]; `mask` [1, 1, S, S], added to the scores: the lowest float for
 * tokens that come later and for padding; `text_cos` and `text_sin` [S, headSize / 2]. Output: `cond` [B, S, n · hidden], the
 * inputs of the n layers `states`, rising and by default the last alone, not normalised. Throws model.invalid for weights
 * that are absent or have other shapes.
 */
export function buildQwen3(
  network: Network,
  config: Qwen3Config,
  trace: Trace = () => {},
  states: readonly number[] = [config.layers - 1],
): void {
  const { graph } = network;
  const { hidden, headSize, vocabulary } = config;
  const tokens = graph.input("tokens", "int64", ["B", "S"]);
  const mask = graph.input("mask", "float", [1, 1, "S", "S"]);
  const rotation = rotationInputs(graph, "text", "S", headSize, "halves");
  let x = network.rows("model.embed_tokens.weight", [vocabulary, hidden], tokens);
  const found: Value[] = [];
  for (let index = 0; index < states.at(-1)!; index++) {
    if (states.includes(index)) found.push(x);
    x = layer(network, `model.layers.${index}`, x, config, rotation, mask);
    trace(`layers.${index}`, x);
  }
  const cond = found.length === 0 ? x : joined(graph, [...found, x], 2);
  graph.output(cond, "cond", "float", ["B", "S", states.length * hidden]);
}

/** x + attention(norm(x)), then x + MLP(norm(x)). */
function layer(network: Network, key: string, x: Value, config: Qwen3Config, rotation: Rotation, mask: Value): Value {
  const { graph } = network;
  const { hidden, heads, groups, headSize: size, mlp } = config;
  const norm = (name: string, value: Value): Value => rmsNorm(network, `${key}.${name}.weight`, value, hidden, EPSILON);
  const normal = norm("input_layernorm", x);
  const part = (name: string, count: number): Value =>
    linear(network, `${key}.self_attn.${name}_proj`, normal, [hidden, count * size], { bias: false });
  const turned = (name: "q" | "k", count: number): Value => {
    const each = headNorm(network, `${key}.self_attn.${name}_norm.weight`, part(name, count), [count, size], EPSILON);
    return rotated(graph, each, count, rotation);
  };
  const values = [turned("q", heads), turned("k", groups), part("v", groups)] as const;
  const mixed = groupedAttention(graph, values, { heads, groups, size, mask, parts: PARTS });
  const attended = linear(network, `${key}.self_attn.o_proj`, mixed, [heads * size, hidden], { bias: false });
  const after = add(graph, x, attended);
  const keys = ["gate", "down", "up"].map((name) => `${key}.mlp.${name}_proj`) as [string, string, string];
  return add(graph, after, swiGlu(network, keys, norm("post_attention_layernorm", after), [hidden, mlp]));
}

/** Qwen3-4B has 36. */
const MOST_LAYERS = 256;
/** Ids up to the last special token. */
const FEWEST_TOKENS = 151_669;
const EXPECTED = "a text encoder Qwen3";
const TOKENS = "model.embed_tokens.weight";
const FIRST = "model.layers.0.";
const MARK = `${FIRST}self_attn.q_norm.weight`;
/** Layers of Gemma, which has such norms too. */
const OF_GEMMA = `${FIRST}pre_feedforward_layernorm.weight`;

/** Prefix of the Qwen3 encoder of a file; undefined if there is none. */
export function findQwen3(weights: WeightMap): string | undefined {
  for (const key of weights.keys()) if (key.endsWith(MARK)) return key.slice(0, -MARK.length);
  return undefined;
}

/**
 * Sizes and weights of a Qwen3 encoder, without the layer and the norm after the state that pictures take. Throws
 * model.invalid, and model.unsupported for other language models.
 */
export function qwen3Part(file: ModelHeader, prefix: string): Part<Qwen3Config> {
  const shapes = new PartShapes(file, below(file.weights, prefix), (key) => prefix + key);
  if (shapes.has(OF_GEMMA)) throw unsupported(file.name, EXPECTED, "a Gemma model");
  const config = qwen3Config(shapes);
  const roots = ["model.embed_tokens.", ...Array.from({ length: config.layers - 1 }, (_, i) => `model.layers.${i}.`)];
  return { config, weights: shapes.check((network) => buildQwen3(network, config), roots, EXPECTED) };
}

function qwen3Config(shapes: PartShapes): Qwen3Config {
  const [vocabulary, hidden] = shapes.sides(TOKENS, 2) as [number, number];
  if (vocabulary < FEWEST_TOKENS)
    throw unsupported(shapes.file.name, `${EXPECTED} with ${FEWEST_TOKENS} tokens`, `one with ${vocabulary}`);
  const [headSize] = shapes.sides(MARK, 1) as [number];
  const headsOf = (name: string): number => {
    const [rows] = shapes.sides(`${FIRST}self_attn.${name}_proj.weight`, 2) as [number];
    if (headSize % 2 === 0 && rows % headSize === 0) return rows / headSize;
    throw shapes.invalid(`heads of an even number of numbers that divide ${rows}`, `${headSize}`);
  };
  const [heads, groups] = [headsOf("q"), headsOf("k")];
  if (heads % groups !== 0) throw shapes.invalid(`heads of keys that divide ${heads} heads of queries`, `${groups}`);
  const layers = shapes.count("model.layers.", MOST_LAYERS);
  if (layers < 2) throw shapes.invalid("a language model with at least 2 layers", `${layers}`);
  const [mlp] = shapes.sides(`${FIRST}mlp.gate_proj.weight`, 2) as [number];
  return { hidden, layers, heads, groups, headSize, mlp, vocabulary };
}
