import { CHUNK_LENGTH, type Token } from "./chunks.js";
import { downWeight } from "./down-weight.js";
import { type ChunkEncoder, type Encoding, lastPosition, MASK_TOKEN } from "./encoding.js";
import type { WeightInterpretation } from "./options.js";

/** A weighted encoding; `basePooled` is the pooled output without weights. */
export interface Weighted extends Encoding {
  readonly basePooled: Float32Array | undefined;
}

/** Encodes chunks and applies their weights by an interpretation. */
export async function encodeWeighted(
  run: ChunkEncoder,
  chunks: readonly Token[][],
  interpretation: WeightInterpretation,
  wMax: number,
): Promise<Weighted> {
  const ids = chunks.map((chunk) => chunk.map(({ id }) => id));
  const weights = Float64Array.from(chunks.flat(), ({ weight }) => weight);
  const base = await run.encode(ids);
  const weighted = async (): Promise<Encoding> => {
    switch (interpretation) {
      case "comfy":
        return fromEmpty(run, base, weights);
      case "A1111":
        return withMeanOf(base, weights);
      case "down_weight":
        return downWeight(run, ids, scaledToMaximum(chunks, weights, wMax), base, base, (stage) => stage);
      case "compel":
        return compel(run, ids, weights, base);
      case "comfy++":
        return comfyPlusPlus(run, chunks, ids, weights, base);
    }
  };
  return { ...(await weighted()), basePooled: base.pooled };
}

/** Moves tokens of weight w away from their position in an empty prompt: z_empty + (z - z_empty) * w. */
async function fromEmpty(run: ChunkEncoder, base: Encoding, weights: Float64Array): Promise<Encoding> {
  if (weights.every((weight) => weight === 1)) return base;
  const empty = await run.encodeEmpty();
  return { ...base, cond: moveFromEmpty(base.cond, empty.cond, base.dim, weights) };
}

function moveFromEmpty(cond: Float32Array, empty: Float32Array, dim: number, weights: Float64Array): Float32Array {
  const result = cond.slice();
  const chunk = CHUNK_LENGTH * dim;
  for (const [token, weight] of weights.entries()) {
    if (weight === 1) continue;
    for (let i = token * dim; i < (token + 1) * dim; i++) {
      const origin = empty[i % chunk]!;
      result[i] = (cond[i]! - origin) * weight + origin;
    }
  }
  return result;
}

/** Multiplies each token by its weight, then all tokens by the factor that restores the mean. */
function withMeanOf(base: Encoding, weights: Float64Array): Encoding {
  const { cond, dim } = base;
  let before = 0;
  let after = 0;
  for (let token = 0; token < weights.length; token++) {
    let sum = 0;
    for (let i = token * dim; i < (token + 1) * dim; i++) sum += cond[i]!;
    before += sum;
    after += sum * weights[token]!;
  }
  const factor = after === 0 ? 1 : before / after;
  const result = new Float32Array(cond.length);
  for (let token = 0; token < weights.length; token++) {
    const scale = weights[token]! * factor;
    for (let i = token * dim; i < (token + 1) * dim; i++) result[i] = cond[i]! * scale;
  }
  return { ...base, cond: result };
}

/** Weights divided by the largest, times the smaller of it and wMax; start, end and padding get that maximum itself. */
function scaledToMaximum(chunks: readonly Token[][], weights: Float64Array, wMax: number): Float64Array {
  const largest = weights.reduce((a, b) => Math.max(a, b));
  const top = Math.min(largest, wMax);
  const words = chunks.flat();
  return weights.map((weight, i) => (words[i]?.word === 0 ? top : (weight / largest) * top));
}

/** Applies weights above 1 as "comfy" does, those below by down-weighting. */
async function compel(run: ChunkEncoder, ids: number[][], weights: Float64Array, base: Encoding): Promise<Encoding> {
  const raised = weights.map(atLeastOne);
  const empty = await run.encodeEmpty();
  const from = { ...base, cond: moveFromEmpty(base.cond, empty.cond, base.dim, raised) };
  return downWeight(run, ids, weights, base, from, (cond, chunk, masked) => {
    const positions = raised.slice(chunk * CHUNK_LENGTH, (chunk + 1) * CHUNK_LENGTH);
    return moveFromEmpty(
      cond,
      empty.cond,
      base.dim,
      positions.map((weight, i) => (masked.has(i) ? 1 : weight)),
    );
  });
}

/** Applies weights below 1 by down-weighting, those above by the change of the encoding when the word is masked. */
async function comfyPlusPlus(
  run: ChunkEncoder,
  chunks: readonly Token[][],
  ids: number[][],
  weights: Float64Array,
  base: Encoding,
): Promise<Encoding> {
  const { cond } = await downWeight(run, ids, weights, base, base, (stage) => stage);
  const result = cond === base.cond ? cond.slice() : cond;
  const { dim } = base;
  let excess = 0;
  let words = 0;
  for (const [word, { weight, positions }] of emphasizedWords(chunks)) {
    const affected = [...positions.keys()];
    const variants = await run.encode(
      affected.map((chunk) => chunks[chunk]!.map((token) => (token.word === word ? MASK_TOKEN : token.id))),
    );
    for (const [variant, chunk] of affected.entries()) {
      for (const position of positions.get(chunk)!) {
        const from = (variant * CHUNK_LENGTH + position) * dim;
        const to = (chunk * CHUNK_LENGTH + position) * dim;
        for (let i = 0; i < dim; i++) {
          result[to + i]! += (weight - 1) * (base.cond[to + i]! - variants.cond[from + i]!);
        }
      }
    }
    excess += weight - 1;
    words++;
  }
  // the reference pools the last position of the first chunk, less the mean excess weight; golden/prompt_encode
  const keep = words === 0 ? 1 : 1 - excess / words;
  return { cond: result, dim, pooled: lastPosition(base)?.map((value) => value * keep) };
}

/** Words with a weight above 1, or NaN, and their positions by chunk. */
function emphasizedWords(
  chunks: readonly Token[][],
): Map<number, { weight: number; positions: Map<number, number[]> }> {
  const words = new Map<number, { weight: number; positions: Map<number, number[]> }>();
  for (const [chunk, tokens] of chunks.entries()) {
    for (const [position, { word, weight }] of tokens.entries()) {
      if (word === 0 || atLeastOne(weight) === 1) continue;
      const entry = words.get(word) ?? { weight, positions: new Map<number, number[]>() };
      words.set(word, entry);
      const positions = entry.positions.get(chunk) ?? [];
      entry.positions.set(chunk, positions);
      positions.push(position);
    }
  }
  return words;
}

const atLeastOne = (weight: number): number => (weight < 1 ? 1 : weight);
