import { isPlainObject } from "../../io/json-lossless.js";
import { Tensor } from "../../tensor/tensor.js";

/** Enough for any result; a stranger structure is counted in part. */
const MAX_VISITS = 20_000;
/** A number, a key, an object's head: about this much. */
const VALUE_BYTES = 64;

/** Memory that several values may share: a buffer, or values on a device. */
export type Holding = Tensor["memory"];

/** What a result holds in memory: distinct buffers, and roughly the bytes of everything else. */
export interface Footprint {
  readonly buffers: readonly Holding[];
  readonly other: number;
  /** False where the value was too large to be looked through. */
  readonly isWhole: boolean;
}

/** The footprint of a value: tensors, typed arrays and texts in lists, plain objects, maps and sets. */
export function measure(value: unknown): Footprint {
  const buffers = new Set<Holding>();
  const seen = new Set<object>();
  const stack: unknown[] = [value];
  let other = 0;
  let isWhole = true;
  const look = (values: Iterable<unknown>, count: number) => {
    if (count > MAX_VISITS) isWhole = false;
    let left = MAX_VISITS;
    for (const value of values) {
      if (left-- === 0) return;
      stack.push(value);
    }
  };
  while (stack.length > 0 && seen.size < MAX_VISITS) {
    const next = stack.pop();
    other += typeof next === "string" ? 2 * next.length : VALUE_BYTES;
    if (typeof next !== "object" || next === null || seen.has(next)) continue;
    seen.add(next);
    if (next instanceof Tensor) buffers.add(next.memory);
    else if (ArrayBuffer.isView(next)) buffers.add(next.buffer);
    else if (next instanceof ArrayBuffer || next instanceof SharedArrayBuffer) buffers.add(next);
    else if (Array.isArray(next) || next instanceof Set) look(next, Array.isArray(next) ? next.length : next.size);
    else if (next instanceof Map) look(next.values(), next.size);
    else if (isPlainObject(next)) {
      const values = Object.values(next);
      look(values, values.length);
    }
  }
  return { buffers: [...buffers], other, isWhole: isWhole && stack.length === 0 };
}
