import { returnMemory, takeMemory } from "../../tensor/memory-pool.js";
import { roundedTime } from "../../tensor/rounding.js";
import type { SeedSequence } from "../../tensor/seed-sequence.js";
import { elementCount } from "../../tensor/tensor.js";

/** A stretch of time of a Brownian path. */
export interface TimeNode {
  readonly start: number;
  readonly end: number;
  /** Number of the node among those of its depth, from the left: its 32-bit words from the lowest. */
  readonly key: readonly number[];
  readonly depth: number;
  /** Its halves, once a request has cut it. */
  cut: TimeCut | undefined;
  /** Number within a request: 0 is the root, 2 i + 1 and 2 i + 2 the halves of cut i. */
  index: number;
}

/** Two halves of a node: left = (W * length) * reciprocal + spread * normals of the seed, right = W - left. */
interface TimeCut {
  readonly node: TimeNode;
  readonly middle: number;
  readonly left: TimeNode;
  readonly right: TimeNode;
  readonly seed: number;
  readonly length: number;
  readonly reciprocal: number;
  readonly spread: number;
  /** Row of the buffer with its left half; -1 if there is none. */
  row: number;
  /** Number of the last request that the cut was part of. */
  request: number;
}

/** Parts of an increment: numbers of the nodes to add from left to right, and the cuts that make them, in order. */
export interface TimeParts {
  readonly terms: number[];
  readonly cuts: TimeCut[];
}

/** The node of a whole path. */
export const rootOf = (start: number, end: number): TimeNode => timeNode(start, end, [0], 0);

const timeNode = (start: number, end: number, key: readonly number[], depth: number): TimeNode => ({
  start,
  end,
  key,
  depth,
  cut: undefined,
  index: 0,
});

/** Adds the parts of [start, end], which the node contains; cuts nodes until the parts fit exactly. */
export function collectParts(node: TimeNode, start: number, end: number, seeds: SeedSequence, to: TimeParts): void {
  if (start === node.start && end === node.end) {
    to.terms.push(node.index);
    return;
  }
  node.cut ??= cutOf(node, seeds);
  const { middle, left, right } = node.cut;
  left.index = 2 * to.cuts.length + 1;
  right.index = left.index + 1;
  to.cuts.push(node.cut);
  if (start < middle) collectParts(left, start, Math.min(end, middle), seeds, to);
  if (end > middle) collectParts(right, Math.max(start, middle), end, seeds, to);
}

function cutOf(node: TimeNode, seeds: SeedSequence): TimeCut {
  const { start, end, key, depth } = node;
  const middle = roundedTime((start + end) / 2);
  const reciprocal = 1 / (end - start);
  return {
    node,
    middle,
    left: timeNode(start, middle, childKey(key, 0), depth + 1),
    right: timeNode(middle, end, childKey(key, 1), depth + 1),
    seed: seeds([...key, depth]),
    length: middle - start,
    reciprocal,
    spread: Math.sqrt((middle - start) * (end - middle) * reciprocal),
    row: -1,
    request: 0,
  };
}

/** Twice the number of a node, and 1 more for its right half. */
function childKey(key: readonly number[], half: 0 | 1): number[] {
  const words: number[] = [];
  let carry: number = half;
  for (const word of key) {
    words.push(((word << 1) | carry) >>> 0);
    carry = word >>> 31;
  }
  if (carry > 0) words.push(carry);
  return words;
}

/** Words of engine_cut: four whole numbers, three factors. */
const WORDS = 7;
/** Floats between rows: without them the rows of a latent with sides of powers of 2 would share a few lines of a cache. */
const GAP = 272;
const FLOAT_BYTES = Float32Array.BYTES_PER_ELEMENT;
/** Large blocks of malloc begin 16 bytes behind a line of a cache: rows that begin with one are cut a twentieth faster. */
const SKEW_BYTES = 48;

/** Elements that are worth a thread. */
const LEAST_RANGE = 4096;
const MOST_RANGES = 16;
/** Normals that PyTorch makes together. */
const BLOCK = 16;
/** A range passes over the normals of those before it, an eighth of the time in which it would draw and cut them. */
const SHARE = 7 / 8;

// decisions: Each thread draws its own range of a Brownian path
/** Ends of the ranges of `size` elements that as many threads work on for the same time. */
export function rangeEnds(size: number, threads: number): Uint32Array {
  const count = Math.max(1, Math.min(Math.floor(size / LEAST_RANGE), threads, MOST_RANGES));
  const sums: number[] = [];
  for (let i = 0, weight = 1, sum = 0; i < count; i++, weight *= SHARE) {
    sum += weight;
    sums.push(sum);
  }
  const ends = sums.map((sum) => Math.floor((size * sum) / sums[count - 1]! / BLOCK) * BLOCK);
  ends[count - 1] = size;
  return Uint32Array.from(ends);
}

/** Left halves of the cuts of the last request: a request shares most of its upper cuts with the one before it. */
export class CutRows {
  readonly ends: Uint32Array;
  readonly pitch: number;
  /** Number of rows that the first request makes room for. */
  readonly #expected: number;
  #lefts = new Float32Array(0);
  readonly #cuts: (TimeCut | undefined)[] = [];
  #requests = 0;
  /** Words of the last request, memory of the next: a new array of their size takes a microsecond. */
  #words = new Uint32Array(0);
  #factors = new Float32Array(0);

  constructor(ends: Uint32Array, expected: number) {
    this.ends = ends;
    // the first range is the longest
    this.pitch = this.ends[0]! + GAP;
    this.#expected = expected;
  }

  /**
   * Calls `work` with the rows of a request's cuts, the words of these and its terms; rows and children of all other cuts are
   * dropped.
   */
  compute(
    { cuts, terms }: TimeParts,
    work: (lefts: Float32Array, words: Uint32Array, terms: Uint32Array) => void,
  ): void {
    const end = WORDS * cuts.length;
    const length = end + terms.length;
    if (this.#words.length < length) {
      this.#words = new Uint32Array(2 * length);
      this.#factors = new Float32Array(this.#words.buffer);
    }
    const words = this.#words;
    const factors = this.#factors;
    this.#requests++;
    for (const cut of cuts) cut.request = this.#requests;
    this.#drop(this.#requests);
    this.#grow(cuts.length);
    let free = 0;
    let at = 0;
    for (const cut of cuts) {
      const isDrawn = cut.row >= 0;
      if (!isDrawn) {
        while (this.#cuts[free] !== undefined) free++;
        this.#cuts[free] = cut;
        cut.row = free;
      }
      words[at++] = cut.node.index;
      words[at++] = cut.seed;
      words[at++] = cut.row;
      words[at++] = isDrawn ? 1 : 0;
      factors[at++] = cut.length;
      factors[at++] = cut.reciprocal;
      factors[at++] = cut.spread;
    }
    try {
      words.set(terms, end);
      work(this.#lefts, words.subarray(0, end), words.subarray(end, length));
    } catch (error) {
      this.#drop();
      throw error;
    }
  }

  /** Drops all rows and returns their memory. */
  release(): void {
    this.#drop();
    returnMemory(this.#lefts.buffer);
    this.#lefts = new Float32Array(0);
  }

  /** Drops the rows of all cuts but those of a request, and the cuts themselves. */
  #drop(request?: number): void {
    for (let row = 0; row < this.#cuts.length; row++) {
      const cut = this.#cuts[row];
      if (cut === undefined || cut.request === request) continue;
      this.#cuts[row] = undefined;
      cut.row = -1;
      cut.node.cut = undefined;
    }
  }

  #grow(rows: number): void {
    const pitches = this.pitch * this.ends.length;
    if (rows * pitches <= this.#lefts.length) return;
    const size = elementCount([Math.max(rows, this.#expected), pitches]);
    const lefts = new Float32Array(takeMemory(size * FLOAT_BYTES + SKEW_BYTES), SKEW_BYTES);
    const [before, after] = [this.#lefts.length / this.ends.length, size / this.ends.length];
    for (let i = 0; i < this.ends.length; i++) lefts.set(this.#lefts.subarray(i * before, (i + 1) * before), i * after);
    returnMemory(this.#lefts.buffer);
    this.#lefts = lefts;
  }
}
