import { describe, LatentkitError } from "../../../../base/errors.js";

/** Refuses an option of a sampler that is no finite number above 0. */
export function requirePositive(sampler: string, name: string, value: unknown): void {
  if (typeof value === "number" && value > 0 && value < Number.POSITIVE_INFINITY) return;
  const message = `${sampler}, ${name}: expected a number above 0, received ${describe(value)}.`;
  throw new LatentkitError("value.out-of-range", message);
}

/** Refuses an eta where noise levels do not fall, by their t: no noise can be added on the way. */
export function requireFalling(
  sampler: string,
  { start, end }: { readonly start: number; readonly end: number },
  eta: number,
): void {
  if (end > start) return;
  const message = `${sampler}, eta: expected 0 where sigmas do not fall, received ${eta}.`;
  throw new LatentkitError("value.out-of-range", message);
}

/** Refuses an eta that ends a step below noise level 0, where it has no middle. */
export function requireMiddle(sampler: string, eta: number, sigma: number, down: number): void {
  if (down >= 0) return;
  const message = `${sampler}, eta: expected one that ends the step from sigma ${sigma} above 0, received ${eta}.`;
  throw new LatentkitError("value.out-of-range", message);
}
