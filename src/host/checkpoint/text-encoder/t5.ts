import { describe, LatentkitError } from "../../../base/errors.js";
import { log } from "../../../native/elementary.js";
import { Tensor } from "../../../tensor/tensor.js";
import { type LoraTarget, type NamedPlaces, ownPlaces, underscored } from "../lora/places.js";
import { add, attention, FLOAT_BYTES, linear, type Trace } from "../networks/layers.js";
import { geluTanh, rmsNorm } from "../networks/transformer-layers.js";
import type { Value } from "../onnx/graph.js";
import { below, type ModelHeader, type Part, PartShapes } from "../recognition/part.js";
import type { Adapter, ModelPart } from "../session/model-part.js";
import type { Runtime } from "../session/runtime.js";
import { T5_END, T5_PAD, type T5Lengths, t5Tokens } from "../tokenizer/t5.js";
import type { Network } from "../weights/network.js";
import { unsupported, type WeightMap } from "../weights/stored.js";

/** Four times the longest prompt that models were trained with. Scores of all heads grow with the square of the length. */
const MOST_TOKENS = 2048;

/** A T5 encoder whose graph is built over the weights of a file. */
export class BuiltT5 {
  constructor(
    readonly runtime: Runtime,
    readonly part: ModelPart<T5Config>,
  ) {}

  /** The reference keeps its changed weights in the type of the file, those of other networks in float32. */
  get target(): LoraTarget {
    return { weights: this.part.weights, places: t5Places, isRounded: true };
  }

  adapted(adapter: Adapter): BuiltT5 {
    return new BuiltT5(this.runtime, this.part.adapted(adapter));
  }

  /**
   * Encodes a prompt with padding up to these lengths [1, tokens, hidden]: a token of weight w stands at w times its
   * distance from an empty prompt's. `emptyEnds` says whether that has an end token before its padding. Fails with
   * value.out-of-range for a prompt that is too long.
   */
  async encode(text: string, lengths: T5Lengths, emptyEnds: boolean): Promise<Tensor> {
    const { ids, weights } = t5Tokens(text, lengths);
    if (ids.length > MOST_TOKENS) {
      const message = `${this.part.label}: expected a prompt of at most ${MOST_TOKENS} tokens, received ${ids.length}: ${describe(text)}.`;
      throw new LatentkitError("value.out-of-range", message);
    }
    const cond = await this.#states(ids);
    if (weights.every((weight) => weight === 1)) return cond;
    const empty = ids.map((_, at) => (at === 0 && emptyEnds ? T5_END : T5_PAD));
    return weighted(cond, await this.#states(empty), weights);
  }

  async #states(ids: readonly number[]): Promise<Tensor> {
    const { length } = ids;
    const feeds = {
      tokens: { int64: [...ids], shape: [1, length] },
      buckets: { int64: t5Buckets(length), shape: [length, length] },
    };
    const work = t5Work(this.part.config);
    const session = this.part.session("text encoder T5", (network, config) => buildT5(network, config), { work });
    const { cond } = await this.runtime.run(session, feeds, { isShared: true });
    return cond!;
  }
}

/** (z - empty) · weight + empty at each place. */
function weighted(cond: Tensor, empty: Tensor, weights: readonly number[]): Tensor {
  const out = Tensor.unfilled(cond.shape);
  const width = cond.shape[2]!;
  for (let i = 0; i < out.size; i++) {
    const from = empty.data[i]!;
    out.data[i] = Math.fround(Math.fround(cond.data[i]! - from) * weights[Math.floor(i / width)]!) + from;
  }
  return out;
}

/** Sizes of a T5 encoder. */
export interface T5Config {
  readonly hidden: number;
  readonly layers: number;
  readonly heads: number;
  readonly headSize: number;
  /** Numbers between the layers of a block's MLP. */
  readonly mlp: number;
  /** Rows of the token table. */
  readonly vocabulary: number;
}

/** Bytes of a run beside the weights, for each value of an input: those of a token in an MLP, and of scores. */
const t5Work = ({ hidden, mlp, heads }: T5Config): { readonly tokens: number; readonly buckets: number } => ({
  tokens: FLOAT_BYTES * (3 * mlp + 8 * hidden),
  buckets: FLOAT_BYTES * 3 * heads,
});

const EPSILON = 1e-6;
/** Buckets of distances, half of them for keys after the query. */
const BUCKETS = 32;
const SIDE = BUCKETS / 2;
/** Distances up to this have a bucket each. */
const NEAR = SIDE / 2;
/** Distance from which all share the last bucket. */
const FAR = 128;

const TOKEN_TABLE = "shared.weight";
const BIAS_TABLE = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight";

/**
 * Writes a T5 encoder. Inputs: `tokens` int64 [B, S]; `buckets` int64 [S, S], as t5Buckets lists them. Output: `cond` [B, S,
 * hidden], the normalised last state; padding takes part. Throws model.invalid for weights that are absent or have other
 * shapes.
 */
export function buildT5(network: Network, config: T5Config, trace: Trace = () => {}): void {
  const { graph } = network;
  const { hidden, layers, vocabulary } = config;
  const tokens = graph.input("tokens", "int64", ["B", "S"]);
  const bias = positionBias(network, config);
  trace("position_bias", bias);
  let x = network.rows(TOKEN_TABLE, [vocabulary, hidden], tokens);
  trace("embed", x);
  for (let index = 0; index < layers; index++) {
    x = block(network, `block.${index}`, x, config, bias, trace);
    trace(`block.${index}`, x);
  }
  const normal = rmsNorm(network, "encoder.final_layer_norm.weight", x, hidden, EPSILON);
  graph.output(normal, "cond", "float", ["B", "S", hidden]);
}

/** Scores [1, heads, S, S] that every block adds to its own. */
function positionBias(network: Network, { heads }: T5Config): Value {
  const { graph } = network;
  const buckets = graph.input("buckets", "int64", ["S", "S"]);
  const each = network.rows(BIAS_TABLE, [BUCKETS, heads], buckets);
  const byHead = graph.node("Transpose", [each], { perm: { ints: [2, 0, 1] } });
  return graph.node("Unsqueeze", [byHead, graph.ints([0])]);
}

/** x + attention(norm(x)), then x + MLP(norm(x)). */
function block(network: Network, name: string, x: Value, config: T5Config, bias: Value, trace: Trace): Value {
  const { graph } = network;
  const { hidden, heads, headSize, mlp } = config;
  const inner = heads * headSize;
  const norm = (layer: string, value: Value): Value => {
    const normal = rmsNorm(network, `encoder.${layer}.layer_norm.weight`, value, hidden, EPSILON);
    trace(`${layer}.layer_norm`, normal);
    return normal;
  };
  const project = (key: string, value: Value, sides: readonly [number, number]): Value =>
    linear(network, `encoder.${key}`, value, sides, { bias: false });
  const self = `${name}.layer.0.SelfAttention`;
  const before = norm(`${name}.layer.0`, x);
  const [query, key, value] = ["q", "k", "v"].map((part) => project(`${self}.${part}`, before, [hidden, inner]));
  const mixed = attention(graph, [query!, key!, value!], { heads, width: inner, mask: bias, scale: 1 });
  const attended = project(`${self}.o`, mixed, [inner, hidden]);
  trace(self, attended);
  const after = add(graph, x, attended);
  const dense = `${name}.layer.1.DenseReluDense`;
  const normal = norm(`${name}.layer.1`, after);
  const wide = (part: string): Value => project(`${dense}.${part}`, normal, [hidden, mlp]);
  const gated = graph.node("Mul", [geluTanh(graph, wide("wi_0")), wide("wi_1")]);
  const out = project(`${dense}.wo`, gated, [mlp, hidden]);
  trace(dense, out);
  return add(graph, after, out);
}

/** The bucket of a key at `distance` tokens after the query, before it if negative: 0 … 31. */
function t5Bucket(distance: number): number {
  const side = distance > 0 ? SIDE : 0;
  const far = Math.abs(distance);
  if (far < NEAR) return side + far;
  // in float32 at each step as in the source
  const share = Math.fround(Math.fround(log(far / NEAR)) / Math.fround(log(FAR / NEAR)));
  return side + Math.min(SIDE - 1, NEAR + Math.floor(Math.fround(share * (SIDE - NEAR))));
}

/** Buckets [S, S] of every key for every query, queries first. @internal */
export function t5Buckets(length: number): number[] {
  const buckets = Array.from({ length: 2 * length }, (_, index) => t5Bucket(index - length));
  return Array.from({ length: length * length }, (_, index) => {
    const query = Math.floor(index / length);
    return buckets[(index % length) - query + length]!;
  });
}

/** T5-XXL has 24. */
const MOST_LAYERS = 256;
/** Ids up to the last further token. */
const FEWEST_TOKENS = 32_100;
const EXPECTED = "a text encoder T5 (version 1.1)";
const BLOCKS = "encoder.block.";
const ATTENTION = `${BLOCKS}0.layer.0.SelfAttention.`;
const DENSE = `${BLOCKS}0.layer.1.DenseReluDense.`;
/** Key that shows an encoder, so that one is found that lacks others. */
const MARK = `${ATTENTION}k.weight`;
const ROOTS = [BLOCKS, "encoder.final_layer_norm."];
/** Another name of the token table, which may stand beside it. */
const OTHER_TABLE = "encoder.embed_tokens.weight";
/** Relatives by a key that they have. */
const RELATIVES = [
  [`${DENSE}wi.weight`, "one of version 1.0"],
  [BIAS_TABLE.replace(".0.", ".1."), "a UMT5 encoder"],
] as const;

/** Prefix of the T5 encoder of a file; undefined if there is none. */
export function findT5(weights: WeightMap): string | undefined {
  for (const key of weights.keys()) if (key.endsWith(MARK)) return key.slice(0, -MARK.length);
  return undefined;
}

/** Sizes and weights of a T5 encoder. Throws model.invalid, and model.unsupported for its relatives. */
export function t5Part(file: ModelHeader, prefix: string): Part<T5Config> {
  const weights = below(file.weights, prefix);
  const other = weights.get(OTHER_TABLE);
  if (other !== undefined && !weights.has(TOKEN_TABLE)) weights.set(TOKEN_TABLE, other);
  const shapes = new PartShapes(file, weights, (key) => prefix + key);
  for (const [key, relative] of RELATIVES) if (shapes.has(key)) throw unsupported(file.name, EXPECTED, relative);
  const config = t5Config(shapes);
  return { config, weights: shapes.check((network) => buildT5(network, config), ROOTS, EXPECTED) };
}

function t5Config(shapes: PartShapes): T5Config {
  const [vocabulary, hidden] = shapes.sides(TOKEN_TABLE, 2) as [number, number];
  if (vocabulary < FEWEST_TOKENS)
    throw unsupported(shapes.file.name, `${EXPECTED} with ${FEWEST_TOKENS} tokens`, `one with ${vocabulary}`);
  const [buckets, heads] = shapes.sides(BIAS_TABLE, 2) as [number, number];
  if (buckets !== BUCKETS)
    throw unsupported(shapes.file.name, `${EXPECTED} with ${BUCKETS} buckets of distances`, `one with ${buckets}`);
  const [inner] = shapes.sides(`${ATTENTION}q.weight`, 2) as [number];
  if (inner % heads !== 0) throw shapes.invalid(`a multiple of ${heads} heads as rows of ${ATTENTION}q`, `${inner}`);
  const [mlp] = shapes.sides(`${DENSE}wi_0.weight`, 2) as [number];
  const layers = shapes.count(BLOCKS, MOST_LAYERS);
  return { hidden, layers, heads, headSize: inner / heads, mlp, vocabulary };
}

/** Layers of a T5 encoder by the names of LoRA files: it is the third encoder of some trainers, the second of others. @internal */
export const t5Places = (weights: WeightMap): NamedPlaces =>
  [...ownPlaces(weights)].map(([module, at]) => [
    [
      ...["lora_te3_", "lora_te2_", "lora_te_"].map((prefix) => prefix + underscored(module)),
      ...["text_encoder_2.", "text_encoder_3.", "text_encoders.t5xxl.transformer."].map((prefix) => prefix + module),
    ],
    at,
  ]);
