import { Lending } from "./buffer-owners.js";
import type { Cache, Entry } from "./cache.js";

/** Where the results of a run's nodes are. */
export interface ResultsPlace {
  readonly cache: Cache;
  /** No other run uses the cache: nothing goes into it. */
  readonly isOwnCache: boolean;
  /** Nodes whose results no other run will take: a cache that runs share does not keep them. */
  readonly passing?: ReadonlySet<string>;
  /** Nobody but the run's nodes sees its results, and they keep nothing: the memory of those that leave is used again. */
  readonly isReused?: boolean;
}

/** Results of a run's nodes: their own, those of equal nodes and of earlier runs. */
export class Results {
  private readonly own = new Map<string, Entry>();
  /** By signature: nodes whose results are not released. */
  private readonly equals = new Map<number, number>();
  /** By signature: results that an equal node of this run may still take, whatever a cache keeps. */
  private readonly twins = new Map<number, Entry>();
  private readonly lending: Lending | undefined;
  /** Nodes whose results are for this run alone, and for no equal node. */
  private readonly lent = new Set<string>();

  constructor(
    ids: Iterable<string>,
    private readonly signatures: ReadonlyMap<string, number>,
    private readonly place: ResultsPlace,
  ) {
    this.lending = place.isReused === true ? new Lending() : undefined;
    for (const id of ids) {
      const signature = signatures.get(id);
      if (signature !== undefined) this.equals.set(signature, (this.equals.get(signature) ?? 0) + 1);
    }
  }

  /** What this run itself knows of a node. */
  get(id: string): Entry | undefined {
    return this.own.get(id);
  }

  /** A node's result: of this run, of an equal node or of an earlier run. */
  find(id: string): Entry | undefined {
    const own = this.own.get(id);
    if (own !== undefined) return own;
    const signature = this.signatures.get(id);
    if (signature === undefined) return undefined;
    const stored = this.twins.get(signature) ?? this.place.cache.get(signature);
    if (stored !== undefined) {
      this.own.set(id, stored);
      this.lending?.share(stored);
    }
    return stored;
  }

  keep(id: string, entry: Entry): void {
    if (this.own.get(id) === entry) return;
    this.own.set(id, entry);
    const signature = this.signatures.get(id);
    const isTwin = signature !== undefined && (this.equals.get(signature) ?? 0) > 1;
    const isCached = signature !== undefined && !this.isOwn(id);
    if (isTwin) this.twins.set(signature, entry);
    if (isCached) this.place.cache.put(signature, entry);
    if (isTwin || isCached) this.lending?.share(entry);
    else {
      this.lent.add(id);
      this.lending?.hold(entry);
    }
  }

  /** Lets go of a result; a cache that other runs share keeps what these may take. */
  release(id: string): void {
    const entry = this.own.get(id);
    if (entry === undefined) return;
    this.own.delete(id);
    if (this.lent.delete(id)) this.lending?.release(entry);
    const signature = this.signatures.get(id);
    if (signature === undefined) return;
    const left = (this.equals.get(signature) ?? 0) - 1;
    this.equals.set(signature, left);
    if (left <= 0) this.twins.delete(signature);
  }

  private isOwn(id: string): boolean {
    return this.place.isOwnCache || this.place.passing?.has(id) === true;
  }
}
