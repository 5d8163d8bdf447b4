import { describe, LatentkitError } from "../errors.js";
import { CHECKED_LATER, checkOptions, type OptionRules } from "../options.js";
import type { NodeUi } from "./events.js";
import { type Footprint, type Holding, measure } from "./execution/footprint.js";

/** What a node left: the list of values of each output, and its UI result. */
export interface Entry {
  readonly outputs: readonly (readonly unknown[])[];
  readonly ui?: NodeUi;
  /** The node did not run because an input was an empty list; its mapped consumers do not run either. */
  readonly skipped?: boolean;
}

/** @internal */
export const CACHE_POLICIES = ["bytes", "classic", "lru", "none"] as const;
/**
 * "bytes": the least recently used results leave when all together exceed `size` bytes; "classic": the last
 * graph's results; "lru": besides the last graph's, older ones up to `size` in all; "none": nothing, runs do not use it.
 */
export type CachePolicy = (typeof CACHE_POLICIES)[number];

const DEFAULT_BYTES = 2 ** 30;
const DEFAULT_COUNT = 1000;
/** As many signatures are kept, the last used, or twice those of a run; with every run of a batch some are new. */
const KEPT_SIGNATURES = 20_000;
/** Results without tensors count no bytes, and a service adds some with every run. */
const MAX_RESULTS = 20_000;

const NO_FOOTPRINT: Footprint = { buffers: [], other: 0, isWhole: false };

interface Stored {
  readonly entry: Entry;
  readonly footprint: Footprint;
  /** Counter of the last run that used it. */
  run: number;
}

export interface CacheOptions {
  policy?: CachePolicy;
  size?: number;
}

const CACHE_RULES: OptionRules<CacheOptions> = { policy: CHECKED_LATER, size: CHECKED_LATER };

/** A cache for runs of graphs; runs that share it take equal nodes' results from each other. */
export function createCache(options: CacheOptions = {}): Cache {
  checkOptions("createCache", options, CACHE_RULES);
  const { policy = "bytes", size = policy === "bytes" ? DEFAULT_BYTES : DEFAULT_COUNT } = options;
  if (!CACHE_POLICIES.includes(policy)) {
    const expected = CACHE_POLICIES.join(", ");
    throw new LatentkitError("value.invalid", `Cache policy: expected ${expected}, received ${describe(policy)}.`);
  }
  if (typeof size !== "number" || !(size >= 0)) {
    throw new LatentkitError("value.invalid", `Cache size: expected a number from 0, received ${describe(size)}.`);
  }
  return new Cache(policy, size);
}

/** Results by signature, and the memory that node instances keep. Made by `createCache`. */
export class Cache {
  private readonly results = new Map<number, Stored>();
  private readonly holders = new Map<Holding, number>();
  private readonly signatures = new Map<string, number>();
  private readonly identities = new WeakMap<object, number>();
  private readonly states = new Map<string, { definition: object; state: Record<string, unknown> }>();
  private counter = 0;
  private run = 0;
  private held = 0;

  constructor(
    readonly policy: CachePolicy,
    readonly limit: number,
  ) {}

  /** Bytes the results hold, tensors counted once however many hold them; measured for the policy "bytes" only. */
  get bytes(): number {
    return this.held;
  }

  /** Number of nodes with results. */
  get size(): number {
    return this.results.size;
  }

  clear(): void {
    this.results.clear();
    this.holders.clear();
    this.signatures.clear();
    this.states.clear();
    this.held = 0;
  }

  /** @internal The number of a signature: equal texts, equal numbers. */
  intern(text: string): number {
    const known = this.signatures.get(text);
    // the last used is the last to leave
    if (known !== undefined) this.signatures.delete(text);
    const number = known ?? this.unique();
    this.signatures.set(text, number);
    return number;
  }

  /** @internal A number no other signature has. */
  unique(): number {
    this.counter++;
    return this.counter;
  }

  /** @internal The number of an object, for signatures that hold it. */
  identity(object: object): number {
    const known = this.identities.get(object);
    if (known !== undefined) return known;
    const made = this.unique();
    this.identities.set(object, made);
    return made;
  }

  /** @internal */
  has(signature: number | undefined): boolean {
    return signature !== undefined && this.results.has(signature);
  }

  /** @internal */
  get(signature: number): Entry | undefined {
    const stored = this.results.get(signature);
    if (stored === undefined) return undefined;
    stored.run = this.run;
    if (this.policy !== "classic") {
      this.results.delete(signature);
      this.results.set(signature, stored);
    }
    return stored.entry;
  }

  /** @internal */
  put(signature: number, entry: Entry): void {
    this.drop(signature);
    const footprint = this.policy === "bytes" ? measure(entry) : NO_FOOTPRINT;
    this.results.set(signature, { entry, footprint, run: this.run });
    this.held += footprint.other;
    for (const buffer of footprint.buffers) {
      const holders = this.holders.get(buffer) ?? 0;
      this.holders.set(buffer, holders + 1);
      if (holders === 0) this.held += buffer.byteLength;
    }
    if (this.policy === "bytes") {
      this.evictWhile(() => this.held > this.limit || this.results.size > MAX_RESULTS);
    }
  }

  /** @internal A run with these signatures and node ids begins: what it cannot use leaves, as the policy says. */
  begin(signatures: ReadonlySet<number>, ids: ReadonlySet<string>): void {
    this.run++;
    for (const id of this.states.keys()) if (!ids.has(id)) this.states.delete(id);
    if (this.policy === "classic") {
      for (const signature of this.results.keys()) if (!signatures.has(signature)) this.drop(signature);
    }
    if (this.policy === "lru") {
      for (const signature of signatures) this.get(signature);
      this.evictWhile((oldest) => this.results.size > this.limit && oldest.run < this.run);
    }
    const most = Math.max(KEPT_SIGNATURES, 2 * signatures.size);
    for (const text of this.signatures.keys()) {
      if (this.signatures.size <= most) break;
      this.signatures.delete(text);
    }
  }

  /** @internal The memory of the node with this id, new where the id had another class. */
  stateOf(id: string, definition: object): Record<string, unknown> {
    const known = this.states.get(id);
    if (known?.definition === definition) return known.state;
    const state: Record<string, unknown> = {};
    this.states.set(id, { definition, state });
    return state;
  }

  private evictWhile(isTooMuch: (oldest: Stored) => boolean): void {
    for (const [signature, stored] of this.results) {
      if (!isTooMuch(stored)) return;
      this.drop(signature);
    }
  }

  private drop(signature: number): void {
    const stored = this.results.get(signature);
    if (stored === undefined) return;
    this.results.delete(signature);
    this.held -= stored.footprint.other;
    for (const buffer of stored.footprint.buffers) {
      const holders = this.holders.get(buffer)! - 1;
      if (holders > 0) this.holders.set(buffer, holders);
      else {
        this.holders.delete(buffer);
        this.held -= buffer.byteLength;
      }
    }
  }
}
