import { isPlainObject } from "../../io/json/lossless.js";
import { Tensor } from "../../tensor/tensor.js";

/** Number of values visited at most: enough for any result; of a larger structure a part is counted. */
const MAX_VISITS = 20_000;
/** Rough size of a number, a key or the header of an object. */
const VALUE_BYTES = 64;

/** Memory that several values may share: a buffer, or values on a device. */
export type Memory = Tensor["memory"];

/** Memory that a result holds: distinct buffers, and roughly the bytes of everything else. */
export interface Footprint {
  readonly buffers: readonly Memory[];
  readonly otherBytes: number;
  /** False where the value was too large to visit as a whole. */
  readonly isComplete: boolean;
}

/** Measures a value: tensors, typed arrays and texts in lists, plain objects, maps and sets. */
export function measure(value: unknown): Footprint {
  const buffers = new Set<Memory>();
  const visited = new Set<object>();
  const stack: unknown[] = [value];
  let otherBytes = 0;
  let isComplete = true;
  const visit = (values: Iterable<unknown>, count: number) => {
    if (count > MAX_VISITS) isComplete = false;
    let left = MAX_VISITS;
    for (const value of values) {
      if (left-- === 0) return;
      stack.push(value);
    }
  };
  while (stack.length > 0 && visited.size < MAX_VISITS) {
    const next = stack.pop();
    otherBytes += typeof next === "string" ? 2 * next.length : VALUE_BYTES;
    if (typeof next !== "object" || next === null || visited.has(next)) continue;
    visited.add(next);
    if (next instanceof Tensor) buffers.add(next.memory);
    else if (ArrayBuffer.isView(next)) buffers.add(next.buffer);
    else if (next instanceof ArrayBuffer || next instanceof SharedArrayBuffer) buffers.add(next);
    else if (Array.isArray(next) || next instanceof Set) visit(next, Array.isArray(next) ? next.length : next.size);
    else if (next instanceof Map) visit(next.values(), next.size);
    else if (isPlainObject(next)) {
      const values = Object.values(next);
      visit(values, values.length);
    }
  }
  return { buffers: [...buffers], otherBytes, isComplete: isComplete && stack.length === 0 };
}
