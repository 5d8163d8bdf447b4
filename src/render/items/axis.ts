/** One direction of a matrix: the keys that it sets, and the values that it gives all of them, one after the other. */
export interface Axis {
  /** Option as the user wrote it, for messages: "--sweep 3.steps". */
  readonly option: string;
  readonly keys: readonly string[];
  readonly count: bigint;
  values(): Iterable<unknown>;
  /** Values of which none is wrong where all of these are right: the ends of a range. */
  samples(): Iterable<unknown>;
}

/** Whole numbers from one to another, both included. */
export interface Range {
  readonly from: bigint;
  readonly to: bigint;
}

export const rangeLength = ({ from, to }: Range): bigint => to - from + 1n;

/** Numbers of a range as JSON has them: bigints only beyond 2^53. */
export function* rangeValues({ from, to }: Range): Generator<number | bigint, void, undefined> {
  for (let value = from; value <= to; value++) yield jsonNumber(value);
}

/** The first number of a range, and the last one. */
export const rangeEnds = ({ from, to }: Range): (number | bigint)[] =>
  (from === to ? [from] : [from, to]).map(jsonNumber);

function jsonNumber(value: bigint): number | bigint {
  const small = Number(value);
  return Number.isSafeInteger(small) ? small : value;
}
