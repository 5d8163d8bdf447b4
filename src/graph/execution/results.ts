import type { Cache, Entry } from "../cache.js";
import { Lending } from "./lending.js";

/** Where the results of a run's nodes are. */
export interface ResultsPlace {
  readonly cache: Cache;
  /** No other run uses the cache: it keeps only what an equal node of this run may still take. */
  readonly isOwnCache: boolean;
  /** Nodes whose results no other run will take: a cache that runs share does not keep them. */
  readonly passing?: ReadonlySet<string>;
  /** Nobody but the run's nodes sees its results, and they keep nothing: the memory of those that leave is used again. */
  readonly isReused?: boolean;
}

/** Results of a run's nodes: their own, those of equal nodes and of earlier runs. */
export class Results {
  private readonly own = new Map<string, Entry>();
  /** By signature: nodes of results that are for this run alone, and not released. */
  private readonly equals = new Map<number, number>();
  private readonly lending: Lending | undefined;
  /** Nodes whose results are for this run alone and in no cache. */
  private readonly lent = new Set<string>();

  constructor(
    ids: Iterable<string>,
    private readonly signatures: ReadonlyMap<string, number>,
    private readonly place: ResultsPlace,
  ) {
    this.lending = place.isReused === true ? new Lending() : undefined;
    if (!place.isOwnCache && place.passing === undefined) return;
    for (const id of ids) {
      const signature = this.isOwn(id) ? signatures.get(id) : undefined;
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
    const stored = signature === undefined ? undefined : this.place.cache.get(signature);
    if (stored !== undefined) {
      this.own.set(id, stored);
      this.lending?.share(stored);
    }
    return stored;
  }

  keep(id: string, entry: Entry): void {
    const signature = this.signatures.get(id);
    const isNew = this.own.get(id) !== entry;
    if (signature !== undefined && isNew && this.isWanted(id, signature)) {
      this.place.cache.put(signature, entry);
      this.lending?.share(entry);
    } else if (isNew) {
      this.lent.add(id);
      this.lending?.hold(entry);
    }
    this.own.set(id, entry);
  }

  /** Lets go of a result; a cache that other runs share keeps what these may take. */
  release(id: string): void {
    const entry = this.own.get(id);
    if (entry === undefined) return;
    this.own.delete(id);
    if (this.lent.delete(id)) this.lending?.release(entry);
    if (!this.isOwn(id)) return;
    const signature = this.signatures.get(id);
    if (signature === undefined) return;
    const left = (this.equals.get(signature) ?? 0) - 1;
    this.equals.set(signature, left);
    if (left <= 0) this.place.cache.forget(signature);
  }

  private isOwn(id: string): boolean {
    return this.place.isOwnCache || this.place.passing?.has(id) === true;
  }

  private isWanted(id: string, signature: number): boolean {
    return !this.isOwn(id) || (this.equals.get(signature) ?? 0) > 1;
  }
}
