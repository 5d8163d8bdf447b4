import { roundedTime } from "../../tensor/rounded-time.js";
import type { SeedSequence } from "../../tensor/seed-sequence.js";

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
export interface TimeCut {
  readonly node: TimeNode;
  readonly middle: number;
  readonly left: TimeNode;
  readonly right: TimeNode;
  readonly seed: number;
  readonly length: number;
  readonly reciprocal: number;
  readonly spread: number;
  /** Row of the buffer with its left half; -1 where there is none. */
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
