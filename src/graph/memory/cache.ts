import { describe, LatentkitError } from "../../base/errors.js";
import { CHECKED_LATER, checkOptions, type OptionRules } from "../../base/options.js";
import { isPlainObject } from "../../io/json/lossless.js";
import { Tensor } from "../../tensor/tensor.js";
import type { NodeUi } from "../events.js";

/** A warning that belongs to a result: of its node, or of one that it was computed from. */
export interface KeptWarning {
  /** Id and class of the node that warned, in the run that computed it. */
  readonly nodeId: string;
  readonly node: string;
  /** Signature of that node, by which a later run finds its own; undefined for a node of an expansion. */
  readonly signature: number | undefined;
  readonly message: string;
}

/** Result of a node: the list of values of each output, and its UI result. */
export interface Entry {
  readonly outputs: readonly (readonly unknown[])[];
  readonly ui?: NodeUi;
  /** The node did not run because an input was an empty list; nodes that run once per value of its outputs do not run either. */
  readonly skipped?: boolean;
  readonly warnings?: readonly KeptWarning[];
}

/** @internal */
export const CACHE_POLICIES = ["bytes", "classic", "lru", "none"] as const;
/**
 * "bytes": evicts the least recently used results when all together exceed `size` bytes; "classic": keeps the results of
 * the last graph; "lru": keeps older ones too, up to `size` in all; "none": keeps nothing, runs do not use it.
 */
export type CachePolicy = (typeof CACHE_POLICIES)[number];

const DEFAULT_BYTES = 2 ** 30;
const DEFAULT_COUNT = 1000;
/** Number of signatures kept, the most recently used ones, or twice those of a run; every run of a batch adds some. */
const MAX_SIGNATURES = 20_000;
/** Bound for small results: a service adds some with every run. */
const MAX_RESULTS = 20_000;

const NO_FOOTPRINT: Footprint = { buffers: [], otherBytes: 0, isComplete: false };

interface Stored {
  readonly entry: Entry;
  readonly footprint: Footprint;
  /** Number of the last run that used it. */
  run: number;
}

/** Options of `createCache`. `size` is bytes (1 GiB if absent) for the policy "bytes", results (1000) for "lru". */
export interface CacheOptions {
  /** Kind of the bound: "bytes", or "lru", a number of results; "bytes" if absent. */
  policy?: CachePolicy;
  /** The bound; 1 GiB, or 1000 results, if absent. */
  size?: number;
}

const CACHE_RULES: OptionRules<CacheOptions> = { policy: CHECKED_LATER, size: CHECKED_LATER };

/** Makes a cache for runs of graphs; runs that share it share the results of equal nodes. */
export function createCache(options: CacheOptions = {}): Cache {
  checkOptions("createCache", options, CACHE_RULES);
  const { policy = "bytes", size = policy === "bytes" ? DEFAULT_BYTES : DEFAULT_COUNT } = options;
  if (!CACHE_POLICIES.includes(policy)) {
    const expected = `one of ${CACHE_POLICIES.join(", ")}`;
    throw new LatentkitError("value.invalid", `Cache policy: expected ${expected}, received ${describe(policy)}.`);
  }
  if (typeof size !== "number" || !(size >= 0)) {
    throw new LatentkitError("value.invalid", `Cache size: expected a number from 0, received ${describe(size)}.`);
  }
  return new Cache(policy, size);
}

/** Results by signature, and the state of node instances. Made by `createCache`. */
export class Cache {
  readonly #results = new Map<number, Stored>();
  readonly #owners = new Map<Memory, number>();
  readonly #signatures = new Map<string, number>();
  readonly #identities = new WeakMap<object, number>();
  readonly #states = new Map<string, { definition: object; state: Record<string, unknown> }>();
  #counter = 0;
  #run = 0;
  #ownedBytes = 0;

  constructor(
    readonly policy: CachePolicy,
    readonly limit: number,
  ) {}

  /** Bytes of the results, each buffer counted once; measured for the policy "bytes" only. */
  get bytes(): number {
    return this.#ownedBytes;
  }

  /** Number of results. */
  get size(): number {
    return this.#results.size;
  }

  /** @internal Number of signatures. */
  get signatureCount(): number {
    return this.#signatures.size;
  }

  clear(): void {
    this.#results.clear();
    this.#owners.clear();
    this.#signatures.clear();
    this.#states.clear();
    this.#ownedBytes = 0;
  }

  /** @internal Returns the number of a signature: equal texts have equal numbers. */
  intern(text: string): number {
    const interned = this.#signatures.get(text);
    // deleted and set again: the most recently used is evicted last
    if (interned !== undefined) this.#signatures.delete(text);
    const number = interned ?? this.unique();
    this.#signatures.set(text, number);
    return number;
  }

  /** @internal Returns a number that no other signature has. */
  unique(): number {
    this.#counter++;
    return this.#counter;
  }

  /** @internal Returns the number of an object, for signatures that hold it. */
  identity(object: object): number {
    const number = this.#identities.get(object) ?? this.unique();
    this.#identities.set(object, number);
    return number;
  }

  /** @internal */
  has(signature: number | undefined): boolean {
    return signature !== undefined && this.#results.has(signature);
  }

  /** @internal */
  get(signature: number): Entry | undefined {
    const stored = this.#results.get(signature);
    if (stored === undefined) return undefined;
    stored.run = this.#run;
    if (this.policy !== "classic") {
      this.#results.delete(signature);
      this.#results.set(signature, stored);
    }
    return stored.entry;
  }

  /** @internal */
  put(signature: number, entry: Entry): void {
    this.#drop(signature);
    const footprint = this.policy === "bytes" ? measure(entry) : NO_FOOTPRINT;
    this.#results.set(signature, { entry, footprint, run: this.#run });
    this.#ownedBytes += footprint.otherBytes;
    for (const buffer of footprint.buffers) {
      const owners = this.#owners.get(buffer) ?? 0;
      this.#owners.set(buffer, owners + 1);
      if (owners === 0) this.#ownedBytes += buffer.byteLength;
    }
    if (this.policy === "bytes") {
      this.#evictWhile(() => this.#ownedBytes > this.limit || this.#results.size > MAX_RESULTS);
    }
  }

  /** @internal Begins a run with these signatures and node ids: evicts results that it cannot use, by the policy. */
  begin(signatures: ReadonlySet<number>, ids: ReadonlySet<string>): void {
    this.#run++;
    for (const id of this.#states.keys()) if (!ids.has(id)) this.#states.delete(id);
    if (this.policy === "classic") {
      for (const signature of this.#results.keys()) if (!signatures.has(signature)) this.#drop(signature);
    }
    if (this.policy === "lru") {
      for (const signature of signatures) this.get(signature);
      this.#evictWhile((oldest) => this.#results.size > this.limit && oldest.run < this.#run);
    }
    const limit = Math.max(MAX_SIGNATURES, 2 * signatures.size);
    for (const text of this.#signatures.keys()) {
      if (this.#signatures.size <= limit) break;
      this.#signatures.delete(text);
    }
  }

  /** @internal State of the node with this id, a new one if the id had another class. */
  stateOf(id: string, definition: object): Record<string, unknown> {
    const instance = this.#states.get(id);
    if (instance?.definition === definition) return instance.state;
    const state: Record<string, unknown> = {};
    this.#states.set(id, { definition, state });
    return state;
  }

  #evictWhile(isTooMuch: (oldest: Stored) => boolean): void {
    for (const [signature, stored] of this.#results) {
      if (!isTooMuch(stored)) return;
      this.#drop(signature);
    }
  }

  #drop(signature: number): void {
    const stored = this.#results.get(signature);
    if (stored === undefined) return;
    this.#results.delete(signature);
    this.#ownedBytes -= stored.footprint.otherBytes;
    for (const buffer of stored.footprint.buffers) {
      const owners = this.#owners.get(buffer)! - 1;
      if (owners > 0) this.#owners.set(buffer, owners);
      else {
        this.#owners.delete(buffer);
        this.#ownedBytes -= buffer.byteLength;
      }
    }
  }
}

/** Most values visited: enough for any result; a larger structure is counted in part. */
const MAX_VISITS = 20_000;
/** Rough size of a number, a key or the header of an object. */
const VALUE_BYTES = 64;

/** Memory that several values may share: a buffer, or values on a device. */
export type Memory = Tensor["memory"];

/** Memory that a result holds: distinct buffers, and roughly the bytes of everything else. */
export interface Footprint {
  readonly buffers: readonly Memory[];
  readonly otherBytes: number;
  /** False if the value was too large to visit as a whole. */
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
