import { describe, LatentkitError } from "../../../base/errors.js";
import { Tensor } from "../../../tensor/tensor.js";
import { withoutEmbeddings } from "../../prompt/tokenize.js";
import type { Clip, Conditioning } from "../../types.js";
import { add, causalMask, FLOAT_BYTES, linear, reshape, type Trace } from "../networks/layers.js";
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
import type { OnnxGraph, Value } from "../onnx/graph.js";
import { below, type ModelHeader, type Part, PartShapes } from "../recognition/part.js";
import type { ModelPart } from "../session/model-part.js";
import type { Runtime } from "../session/runtime.js";
import { tokenizeZImage } from "../tokenizer/qwen.js";
import type { Network } from "../weights/network.js";
import { unsupported, type WeightMap } from "../weights/stored.js";

/** Base of the angles' periods. */
export const THETA = 1_000_000;
/** Eight times the longest prompt that Z-Image was trained with. The mask grows with the square of the length. */
export const MOST_TOKENS = 4096;

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
    const tokens = tokenize(withoutEmbeddings(text).replace(/\\([()])/g, "$1"));
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
    // two families may read one file
    const variant = ["text encoder Qwen3", ...(states ?? [])].join(", ");
    const session = this.part.session(variant, build, { work });
    const { cond } = await this.runtime.run(session, feeds, { isShared: true });
    return [[cond!, {}]];
  }
}

/** Sizes of a language model of Qwen. */
export interface Qwen3Config {
  readonly version: "3" | "2.5-vl";
  readonly hidden: number;
  /** Layers of the file; the last one of Qwen3 is not run. */
  readonly layers: number;
  readonly heads: number;
  /** Heads of keys and values. */
  readonly groups: number;
  readonly headSize: number;
  readonly mlp: number;
  readonly vocabulary: number;
}

/**
 * Bytes of a run beside the weights: those of a token, for each value of the input `length`, and of scores, which take the
 * place of most that an MLP has held.
 */
export const qwen3Work = (
  { hidden, mlp, heads }: Qwen3Config,
  length = "tokens",
): Readonly<Record<string, number>> => ({
  [length]: FLOAT_BYTES * (mlp + 4 * hidden),
  mask: FLOAT_BYTES * 1.1 * heads,
});

const EPSILON = 1e-6;
/** Parts in which queries are processed if attention is written out. */
const PARTS = 1;

/**
 * Writes a text encoder of Qwen. Inputs: `tokens` int64 [B, S]; `mask` [1, 1, S, S], added to the scores: the lowest float for
 * tokens that come later and for padding; `text_cos` and `text_sin` [S, headSize / 2]. Output: `cond` [B, S, n · hidden], the
 * inputs of the n layers `states`, rising and by default the last alone, not normalised; of Qwen2.5-VL the last state,
 * normalised. This one reads a prompt of W tokens [1, W] among pictures: `pictures` [P, hidden] are their rows, and `order`
 * int64 [S] the rows of the sequence, in tokens and pictures as one list. Throws model.invalid for weights that are absent
 * or have other shapes.
 */
export function buildQwen3(
  network: Network,
  config: Qwen3Config,
  trace: Trace = () => {},
  states: readonly number[] = [layersRun(config)],
): void {
  const { graph } = network;
  const { hidden, headSize, vocabulary, version } = config;
  const tokens = graph.input("tokens", "int64", ["B", version === "3" ? "S" : "W"]);
  const mask = graph.input("mask", "float", [1, 1, "S", "S"]);
  const rotation = rotationInputs(graph, "text", "S", headSize, "halves");
  let x = network.rows("model.embed_tokens.weight", [vocabulary, hidden], tokens);
  if (version === "2.5-vl") x = amongPictures(graph, x, hidden);
  const found: Value[] = [];
  for (let index = 0; index < states.at(-1)!; index++) {
    if (states.includes(index)) found.push(x);
    x = layer(network, `model.layers.${index}`, x, config, rotation, mask);
    trace(`layers.${index}`, x);
  }
  if (version === "2.5-vl") x = rmsNorm(network, "model.norm.weight", x, hidden, EPSILON);
  const cond = found.length === 0 ? x : joined(graph, [...found, x], 2);
  graph.output(cond, "cond", "float", ["B", "S", states.length * hidden]);
}

const layersRun = ({ version, layers }: Qwen3Config): number => (version === "3" ? layers - 1 : layers);

/** The rows of words [1, W, hidden] and pictures in the order of the sequence. */
function amongPictures(graph: OnnxGraph, words: Value, hidden: number): Value {
  const pictures = graph.input("pictures", "float", ["P", hidden]);
  const order = graph.input("order", "int64", ["S"]);
  const rows = joined(graph, [reshape(graph, words, [-1, hidden]), pictures], 0);
  return graph.node("Unsqueeze", [graph.node("Gather", [rows, order]), graph.ints([0])]);
}

/** x + attention(norm(x)), then x + MLP(norm(x)). */
function layer(network: Network, key: string, x: Value, config: Qwen3Config, rotation: Rotation, mask: Value): Value {
  const { graph } = network;
  const { hidden, heads, groups, headSize: size, mlp, version } = config;
  const norm = (name: string, value: Value): Value => rmsNorm(network, `${key}.${name}.weight`, value, hidden, EPSILON);
  const normal = norm("input_layernorm", x);
  const part = (name: string, count: number): Value =>
    linear(network, `${key}.self_attn.${name}_proj`, normal, [hidden, count * size], { bias: version === "2.5-vl" });
  const turned = (name: "q" | "k", count: number): Value => {
    const each = part(name, count);
    const headNormed = (): Value =>
      headNorm(network, `${key}.self_attn.${name}_norm.weight`, each, [count, size], EPSILON);
    return rotated(graph, version === "3" ? headNormed() : each, count, rotation);
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
const EXPECTED = { "3": "a text encoder Qwen3", "2.5-vl": "a text encoder Qwen2.5-VL" } as const;
const TOKENS = "model.embed_tokens.weight";
const FIRST = "model.layers.0.";
/** Keys that only one version has: norms of heads, or offsets of keys. */
const MARKS = { "3": `${FIRST}self_attn.q_norm.weight`, "2.5-vl": `${FIRST}self_attn.k_proj.bias` } as const;
/** Layers of Gemma, which has such norms too. */
const OF_GEMMA = `${FIRST}pre_feedforward_layernorm.weight`;

/** Width and rows of keys of Qwen2.5-VL-3B, which other models use. */
const OF_3B = [2048, 256] as const;
/** Numbers of a head that no weight shows: those of the published models, and of tiny ones. */
const HEAD_SIZES = [128, 16] as const;

/** Prefix of the encoder of a file; undefined if there is none of that version. */
export function findQwen3(weights: WeightMap, version: Qwen3Config["version"]): string | undefined {
  const mark = MARKS[version];
  for (const key of weights.keys()) if (key.endsWith(mark)) return key.slice(0, -mark.length);
  return undefined;
}

/**
 * Sizes and weights of an encoder, of Qwen3 without the layer and the norm after the state that pictures take. Throws
 * model.invalid, and model.unsupported for other language models.
 */
export function qwen3Part(file: ModelHeader, prefix: string, version: Qwen3Config["version"]): Part<Qwen3Config> {
  const shapes = new PartShapes(file, below(file.weights, prefix), (key) => prefix + key);
  if (shapes.has(OF_GEMMA)) throw unsupported(file.name, EXPECTED[version], "a Gemma model");
  const config = qwen3Config(shapes, version);
  const layers = Array.from({ length: layersRun(config) }, (_, i) => `model.layers.${i}.`);
  const roots = ["model.embed_tokens.", ...layers];
  return { config, weights: shapes.check((network) => buildQwen3(network, config), roots, EXPECTED[version]) };
}

function qwen3Config(shapes: PartShapes, version: Qwen3Config["version"]): Qwen3Config {
  const { name } = shapes.file;
  const expected = EXPECTED[version];
  const [vocabulary, hidden] = shapes.sides(TOKENS, 2) as [number, number];
  if (vocabulary < FEWEST_TOKENS)
    throw unsupported(name, `${expected} with ${FEWEST_TOKENS} tokens`, `one with ${vocabulary}`);
  const rowsOf = (part: string): number => shapes.sides(`${FIRST}self_attn.${part}_proj.weight`, 2)[0]!;
  const ofKeys = rowsOf("k");
  if (version === "2.5-vl" && hidden === OF_3B[0] && ofKeys === OF_3B[1])
    throw unsupported(name, `${expected} of 7 billion parameters`, "the one of 3 billion");
  const headSize =
    version === "3"
      ? shapes.sides(MARKS[version], 1)[0]!
      : (HEAD_SIZES.find((size) => ofKeys % size === 0) ?? HEAD_SIZES[0]);
  const headsOf = (rows: number): number => {
    if (headSize % 2 === 0 && rows % headSize === 0) return rows / headSize;
    throw shapes.invalid(`heads of an even number of numbers that divide ${rows}`, `${headSize}`);
  };
  const [heads, groups] = [headsOf(rowsOf("q")), headsOf(ofKeys)];
  if (heads % groups !== 0) throw shapes.invalid(`heads of keys that divide ${heads} heads of queries`, `${groups}`);
  const layers = shapes.count("model.layers.", MOST_LAYERS);
  if (layers < 2) throw shapes.invalid("a language model with at least 2 layers", `${layers}`);
  const [mlp] = shapes.sides(`${FIRST}mlp.gate_proj.weight`, 2) as [number];
  return { version, hidden, layers, heads, groups, headSize, mlp, vocabulary };
}
