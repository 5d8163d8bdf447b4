import { type ChunkEncoder, type Encoding, lastPosition, MASK_TOKEN } from "./encoding.js";
import type { WeightInterpretation } from "./options.js";
import { CHUNK_LENGTH, type Token } from "./tokenize.js";

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
        return downWeight(run, ids, scaledToMaximum(chunks, weights, wMax), base, base);
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
  const { cond } = await downWeight(run, ids, weights, base, base);
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

/** Finishes the encoding [77, dim] of a stage's chunk, in which these positions are masked. */
type FinishStage = (cond: Float32Array, chunk: number, masked: ReadonlySet<number>) => Float32Array;

/**
 * Applies weights below 1: with the distinct ones ascending, w1, w2, …, stage i masks all positions of weights up to wi.
 * The result is `from` times w1, plus stage 1 times w2 - w1, …, plus the last stage times 1 minus the last weight. So a
 * position keeps the share of its meaning that its weight says.
 * A stage differs from the one before in the chunks that it masks; only those are encoded again.
 */
async function downWeight(
  run: ChunkEncoder,
  ids: readonly number[][],
  weights: Float64Array,
  base: Encoding,
  from: Encoding,
  finish: FinishStage = (stage) => stage,
): Promise<Encoding> {
  const { dim } = base;
  const stages = stagePositions(weights, ids.length);
  if (stages.length === 0) return { ...from, pooled: lastPosition({ ...from, pooled: base.pooled }) };

  const cond = from.cond.slice();
  const chunkSize = CHUNK_LENGTH * dim;
  const running = new Map<number, Stage>();
  for (const { weight, positions } of stages) {
    for (const [chunk, masked] of byChunk(positions)) {
      const at = chunk * chunkSize;
      let stage = running.get(chunk);
      if (stage === undefined) {
        const first = cond.slice(at, at + chunkSize);
        stage = { cond: first, since: 0, ids: [...ids[chunk]!], masked: new Set() };
        running.set(chunk, stage);
        cond.fill(0, at, at + chunkSize);
      }
      addShare(cond, at, stage, weight);
      for (const position of masked) {
        stage.ids[position] = MASK_TOKEN;
        stage.masked.add(position);
      }
      stage.since = weight;
      stage.cond = finish((await run.encode([stage.ids])).cond, chunk, stage.masked);
    }
  }
  for (const [chunk, stage] of running) addShare(cond, chunk * chunkSize, stage, 1);
  return { cond, dim, pooled: lastPosition({ cond, dim, pooled: base.pooled }) };
}

/** Latest stage of a chunk, and the weight from which on it counts. */
interface Stage {
  cond: Float32Array;
  since: number;
  readonly ids: number[];
  readonly masked: Set<number>;
}

function addShare(cond: Float32Array, at: number, { cond: stage, since }: Stage, until: number): void {
  const share = until - since;
  for (let i = 0; i < stage.length; i++) cond[at + i]! += stage[i]! * share;
}

/**
 * Distinct weights below 1, ascending, each with the flat positions that it masks first.
 * For a weight in chunk r the reference masks flat position r, not the positions of the weight (its index array has kept
 * the chunk axis since numpy 2). All vectors of golden/prompt_encode are made that way, so this follows it.
 */
function stagePositions(weights: Float64Array, chunkCount: number): { weight: number; positions: number[] }[] {
  const chunksOf = new Map<number, Set<number>>();
  for (const [i, weight] of weights.entries()) {
    if (!(weight < 1)) continue;
    const chunks = chunksOf.get(weight) ?? new Set<number>();
    chunksOf.set(weight, chunks.add(Math.floor(i / CHUNK_LENGTH)));
  }
  const masked = new Uint8Array(chunkCount);
  return [...chunksOf.keys()]
    .sort((a, b) => a - b)
    .map((weight) => {
      const positions = [...chunksOf.get(weight)!].filter((position) => masked[position] === 0);
      for (const position of positions) masked[position] = 1;
      return { weight, positions };
    });
}

/** Flat positions by chunk, as positions within it. */
function byChunk(positions: readonly number[]): Map<number, number[]> {
  const chunks = new Map<number, number[]>();
  for (const position of positions) {
    const chunk = Math.floor(position / CHUNK_LENGTH);
    const list = chunks.get(chunk) ?? [];
    chunks.set(chunk, list);
    list.push(position % CHUNK_LENGTH);
  }
  return chunks;
}
