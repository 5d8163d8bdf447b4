import { BIAS_TABLE, BUCKETS, buildT5, type T5Config, TOKEN_TABLE } from "../../networks/t5.js";
import type { WeightMap } from "../../weights/stored.js";
import { below, type ModelFile, type Part, PartShapes } from "../part.js";
import { unsupported } from "../refusal.js";

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

/** Prefix of the T5 encoder of a file; undefined where there is none. */
export function findT5(weights: WeightMap): string | undefined {
  for (const key of weights.keys()) if (key.endsWith(MARK)) return key.slice(0, -MARK.length);
  return undefined;
}

/** Sizes and weights of a T5 encoder. Throws model.invalid, and model.unsupported for its relatives. */
export function t5Part(file: ModelFile, prefix: string): Part<T5Config> {
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
