import { CHUNK_LENGTH } from "./chunks.js";
import { type ChunkEncoder, type Encoding, lastPosition, MASK_TOKEN } from "./encoding.js";

/** Finishes the encoding [77, dim] of a stage's chunk, in which the given places are masked. */
type FinishStage = (cond: Float32Array, chunk: number, masked: ReadonlySet<number>) => Float32Array;

/**
 * Weights below 1: with the distinct ones ascending, w1, w2, …, stage i masks all places of weights up to wi. The result
 * is `from` times w1, plus stage 1 times w2 - w1, …, plus the last stage times what is left to 1. A place is masked while
 * its weight is passed, so it keeps just its weight of its meaning.
 * A stage differs from the one before in the chunks it masks anew; only those are encoded again.
 */
export async function downWeight(
  run: ChunkEncoder,
  ids: readonly number[][],
  weights: Float64Array,
  base: Encoding,
  from: Encoding,
  finish: FinishStage,
): Promise<Encoding> {
  const { dim } = base;
  const stages = stagePlaces(weights, ids.length);
  if (stages.length === 0) return { ...from, pooled: lastPosition({ ...from, pooled: base.pooled }) };

  const cond = from.cond.slice();
  const chunkSize = CHUNK_LENGTH * dim;
  const running = new Map<number, Stage>();
  for (const { weight, places } of stages) {
    for (const [chunk, masked] of byChunk(places)) {
      const at = chunk * chunkSize;
      let stage = running.get(chunk);
      if (stage === undefined) {
        const first = cond.slice(at, at + chunkSize);
        stage = { cond: first, since: 0, ids: [...ids[chunk]!], masked: new Set() };
        running.set(chunk, stage);
        cond.fill(0, at, at + chunkSize);
      }
      addShare(cond, at, stage, weight);
      for (const place of masked) {
        stage.ids[place] = MASK_TOKEN;
        stage.masked.add(place);
      }
      stage.since = weight;
      stage.cond = finish((await run.encode([stage.ids])).cond, chunk, stage.masked);
    }
  }
  for (const [chunk, stage] of running) addShare(cond, chunk * chunkSize, stage, 1);
  return { cond, dim, pooled: lastPosition({ cond, dim, pooled: base.pooled }) };
}

/** A chunk as the latest stage has it, and the weight from which on it counts. */
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
 * The distinct weights below 1, ascending, each with the flat places it masks anew.
 * The reference masks, for a weight found in chunk r, flat place r and not the weight's own places (its index array kept
 * the chunk axis, from numpy 2 on). Every vector of golden/prompt_encode is made that way, so this follows it.
 */
function stagePlaces(weights: Float64Array, chunkCount: number): { weight: number; places: number[] }[] {
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
      const places = [...chunksOf.get(weight)!].filter((place) => masked[place] === 0);
      for (const place of places) masked[place] = 1;
      return { weight, places };
    });
}

/** Flat places as places within their chunks. */
function byChunk(places: readonly number[]): Map<number, number[]> {
  const chunks = new Map<number, number[]>();
  for (const place of places) {
    const chunk = Math.floor(place / CHUNK_LENGTH);
    const list = chunks.get(chunk) ?? [];
    chunks.set(chunk, list);
    list.push(place % CHUNK_LENGTH);
  }
  return chunks;
}
