import { CHUNK_LENGTH } from "./chunks.js";
import { type ChunkEncoder, type Encoding, lastPosition, MASK_TOKEN } from "./encoding.js";

/** Finishes the encoding [77, dim] of a stage's chunk, in which these positions are masked. */
type FinishStage = (cond: Float32Array, chunk: number, masked: ReadonlySet<number>) => Float32Array;

/**
 * Applies weights below 1: with the distinct ones ascending, w1, w2, …, stage i masks all positions of weights up to wi.
 * The result is `from` times w1, plus stage 1 times w2 - w1, …, plus the last stage times 1 minus the last weight. So a
 * position keeps the share of its meaning that its weight says.
 * A stage differs from the one before in the chunks that it masks; only those are encoded again.
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
