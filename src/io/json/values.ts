import { LatentkitError } from "../../base/errors.js";

/** A number that a JavaScript number would print differently: 7.0, 1e-07, 0.10. Prints verbatim. */
export class NumberLiteral {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  valueOf(): number {
    return Number(this.text);
  }

  toString(): string {
    return this.text;
  }

  /** The number that JSON.stringify writes, in JavaScript's form: 7 for 7.0. Throws value.invalid for one beyond 1.8e308. */
  toJSON(): number {
    const value = this.valueOf();
    if (Number.isFinite(value)) return value;
    const message = `JSON.stringify: ${this.text.slice(0, 80)} is too large for a JavaScript number; print it with printGraphText.`;
    throw new LatentkitError("value.invalid", message);
  }
}

/** Whether a number is an integer of up to 64 bits, such as a seed, whose last digits JavaScript may have rounded. */
export const mayLackDigits = (x: number): boolean =>
  Number.isInteger(x) && !Number.isSafeInteger(x) && Math.abs(x) <= 2 ** 64;

/** Keys that reach an object's prototype in careless code. */
export const HOSTILE_KEYS: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

/** Limit of nesting: enough for any workflow, and safe for the stack. */
export const MAX_DEPTH = 256;

/** Property with the order of keys in the file, if JavaScript orders them otherwise ("10" before "2"). */
const KEY_ORDER = Symbol("key order");

/** Keys of an object of `parseJson` in the order of the file; those of any other object in its own order. */
export function keysInOrder(object: object): string[] {
  const order = (object as { [KEY_ORDER]?: readonly string[] })[KEY_ORDER];
  if (order === undefined) return Object.keys(object);
  const ordered = new Set(order);
  const added = Object.keys(object).filter((key) => !ordered.has(key));
  return order.filter((key) => Object.hasOwn(object, key)).concat(added);
}

/** Makes `keysInOrder` return this order, if the object's own differs. */
export function rememberOrder(object: object, keys: readonly string[]): void {
  const own = Object.keys(object);
  if (own.length !== keys.length || own.some((key, i) => key !== keys[i])) {
    Object.defineProperty(object, KEY_ORDER, { value: keys, configurable: true });
  }
}

/**
 * Copies lists and plain objects deeply, with literals, bigints and the order of keys; anything else is shared.
 * Throws on nesting beyond 256 levels.
 */
export function cloneJson<T>(value: T, depth = 0): T {
  if (typeof value !== "object" || value === null) return value;
  const isList = Array.isArray(value);
  if (!isList && !isPlainObject(value)) return value;
  if (depth >= MAX_DEPTH) {
    throw new LatentkitError("value.invalid", `Value to copy: expected at most ${MAX_DEPTH} nested levels.`);
  }
  if (isList) return value.map((item) => cloneJson(item, depth + 1)) as T;
  const keys = keysInOrder(value);
  const copy: Record<string, unknown> = {};
  for (const key of keys) copy[key] = cloneJson((value as Record<string, unknown>)[key], depth + 1);
  rememberOrder(copy, keys);
  return copy as T;
}

/** Whether a value is a plain object: no list, no NumberLiteral and no instance of a class. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

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
