import { buildQwen3, type Qwen3Config } from "../../networks/qwen3.js";
import type { WeightMap } from "../../weights/stored.js";
import { below, type ModelFile, type Part, PartShapes } from "../part.js";
import { unsupported } from "../refusal.js";

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

/** Prefix of the Qwen3 encoder of a file; undefined where there is none. */
export function findQwen3(weights: WeightMap): string | undefined {
  for (const key of weights.keys()) if (key.endsWith(MARK)) return key.slice(0, -MARK.length);
  return undefined;
}

/**
 * Sizes and weights of a Qwen3 encoder, without the layer and the norm after the state that pictures take. Throws
 * model.invalid, and model.unsupported for other language models.
 */
export function qwen3Part(file: ModelFile, prefix: string): Part<Qwen3Config> {
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
