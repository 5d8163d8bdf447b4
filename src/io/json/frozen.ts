/** A cached result of one value, and all else that it depends on. */
interface CachedResult {
  readonly dependencies: readonly unknown[];
  readonly result: unknown;
}

const results = new WeakMap<object, Map<symbol, CachedResult>>();

/** Freezes a value of `parseJson` deeply, so that `recall` may cache results about it. */
export function freezeJson(value: unknown): void {
  freeze(value);
  if (typeof value === "object" && value !== null && !results.has(value)) results.set(value, new Map());
}

function freeze(value: unknown): void {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return;
  Object.freeze(value);
  for (const item of Object.values(value)) freeze(item);
}

/** Whether `freezeJson` has frozen this very value. */
export const isFrozenJson = (value: object): boolean => results.has(value);

const NOTHING: readonly unknown[] = [];
const always = () => true;

/**
 * Returns the result of `compute`, cached for a value of `freezeJson` as long as all `dependencies` stay the same. For any
 * other value, and for results that `isCacheable` refuses, it is computed each time. `key` names the result.
 */
export function recall<Result>(
  value: object,
  key: symbol,
  compute: () => Result,
  dependencies: readonly unknown[] = NOTHING,
  isCacheable: (result: Result) => boolean = always,
): Result {
  const cache = results.get(value);
  const cached = cache?.get(key);
  if (cached !== undefined && areEqual(cached.dependencies, dependencies)) return cached.result as Result;
  const result = compute();
  if (cache !== undefined && isCacheable(result)) cache.set(key, { dependencies, result });
  return result;
}

const areEqual = (a: readonly unknown[], b: readonly unknown[]): boolean =>
  a.length === b.length && a.every((item, i) => item === b[i]);
