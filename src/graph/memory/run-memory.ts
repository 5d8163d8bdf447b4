import type { Host } from "../../host/host.js";
import type { Registry } from "../../nodes/registry.js";
import { releaseMemory } from "../../tensor/deferred-values.js";
import type { PreparedNode } from "../prepared.js";
import { type Cache, createCache, type Entry, type Footprint, type Memory, measure } from "./cache.js";

/** Facts about a run that decide how its results are owned, shared and freed; docs/memory.md explains the rules. */
export interface MemoryFacts {
  /** Shared with other runs. Without one, equal nodes of this run share their results. */
  readonly cache?: Cache;
  /** The package's own nodes, which never retain a tensor after they return. */
  readonly builtIns?: Registry;
  readonly host?: Host;
  /** Nodes whose inputs differ in every run: a shared cache keeps neither their results nor those that depend on them. */
  readonly volatileNodes?: ReadonlySet<string>;
  /** True if listeners do not retain values of the run's events after they return. */
  readonly hasTransientEvents?: boolean;
}

/** The results of one run: which a cache shares, which nodes still read, which buffers return to their pool. */
export class RunMemory {
  readonly cache: Cache;
  /** True if nodes, models of the host and listeners do not retain tensors beyond the run. */
  readonly isContained: boolean;
  readonly #hasPrivateCache: boolean;
  readonly #volatile: ReadonlySet<string>;
  readonly #owners: BufferOwners | undefined;
  readonly #isRoot: ReadonlySet<string>;
  #signatures: ReadonlyMap<string, number> = new Map();
  readonly #results = new Map<string, Entry>();
  /** Number of nodes that may still read a node's result, by node id. */
  readonly #readers = new Map<string, number>();
  /** Nodes whose results have been released; if an expansion reads one after all, it runs again. */
  readonly #released = new Set<string>();
  /** Nodes whose results only this run holds, not shared with an equal node. */
  readonly #unshared = new Set<string>();
  /** Number of nodes by signature whose results have not been released. */
  readonly #equals = new Map<number, number>();
  /** Results by signature that an equal node of this run may still take, even if the cache evicts them. */
  readonly #twins = new Map<number, Entry>();
  readonly #nodes: ReadonlyMap<string, PreparedNode>;

  /** `nodes`: all that the roots need, in `order` where sources come first; expansions add to them. */
  constructor(
    facts: MemoryFacts,
    nodes: ReadonlyMap<string, PreparedNode>,
    roots: readonly string[],
    order: readonly string[],
  ) {
    this.#nodes = nodes;
    // with the policy "none" each run has its own cache: equal nodes still share
    const shared = facts.cache?.policy === "none" ? undefined : facts.cache;
    this.cache = shared ?? createCache({ policy: "classic" });
    this.#hasPrivateCache = shared === undefined;
    this.#volatile = withReaders(facts.volatileNodes ?? NONE, nodes, order);
    this.isContained = facts.hasTransientEvents === true && retainsNothing(facts, nodes.values());
    this.#owners = this.isContained ? new BufferOwners() : undefined;
    this.#isRoot = new Set(roots);
    for (const node of nodes.values()) this.addReader(node);
  }

  /** Whether other runs will never take the node's result, nor see its signature. */
  isVolatile(id: string): boolean {
    return this.#volatile.has(id);
  }

  /** Starts with the signatures of all nodes; `ids` are those of the whole graph. */
  begin(signatures: ReadonlyMap<string, number>, ids: readonly string[]): void {
    this.#signatures = signatures;
    this.cache.begin(new Set(signatures.values()), new Set(ids));
    for (const id of this.#nodes.keys()) {
      const signature = signatures.get(id);
      if (signature !== undefined) this.#equals.set(signature, (this.#equals.get(signature) ?? 0) + 1);
    }
  }

  /** Whether the cache holds a result of the node from an earlier run. */
  isCached(id: string): boolean {
    return this.cache.has(this.#signatures.get(id));
  }

  /** The node's result, if this run has taken or computed it. */
  get(id: string): Entry | undefined {
    return this.#results.get(id);
  }

  /** Returns the node's result: of this run, of an equal node or of an earlier run. */
  find(id: string): Entry | undefined {
    const own = this.#results.get(id);
    if (own !== undefined) return own;
    const signature = this.#signatures.get(id);
    if (signature === undefined) return undefined;
    const entry = this.#twins.get(signature) ?? this.cache.get(signature);
    if (entry !== undefined) {
      this.#results.set(id, entry);
      this.#owners?.share(entry);
    }
    return entry;
  }

  signatureOf(id: string): number | undefined {
    return this.#signatures.get(id);
  }

  /** Id of the node of a signature in this run; the given id if it is that node, or if there is none. */
  nodeOf(signature: number | undefined, id: string): string {
    if (signature === undefined || this.#signatures.get(id) === signature) return id;
    for (const [other, own] of this.#signatures) if (own === signature) return other;
    return id;
  }

  /** Counts a node as a reader of all that it links to, lazy links included. */
  addReader({ links }: PreparedNode): void {
    for (const { source } of links) this.addRead(source);
  }

  /** Counts one more reader of a node's result. */
  addRead(id: string): void {
    this.#readers.set(id, (this.#readers.get(id) ?? 0) + 1);
  }

  /** Counts the node as a reader again if its result was released and it has to run again. */
  revive(node: PreparedNode): void {
    if (this.#released.delete(node.id)) this.addReader(node);
  }

  /**
   * Stores a node's result, after which the node no longer reads `sources`. Returns the nodes whose results were
   * released because they had no more readers.
   */
  store({ id }: PreparedNode, entry: Entry, sources: readonly string[]): string[] {
    if (this.#results.get(id) !== entry) this.#add(id, entry);
    const released: string[] = [];
    for (const source of sources) {
      const left = (this.#readers.get(source) ?? 0) - 1;
      this.#readers.set(source, left);
      if (left === 0 && this.#release(source)) released.push(source);
    }
    if ((this.#readers.get(id) ?? 0) <= 0 && this.#release(id)) released.push(id);
    return released;
  }

  #add(id: string, entry: Entry): void {
    this.#results.set(id, entry);
    const signature = this.#signatures.get(id);
    const isTwin = signature !== undefined && (this.#equals.get(signature) ?? 0) > 1;
    const isCached = signature !== undefined && !this.#hasPrivateCache && !this.isVolatile(id);
    if (isTwin) this.#twins.set(signature, entry);
    if (isCached) this.cache.put(signature, entry);
    if (isTwin || isCached) this.#owners?.share(entry);
    else {
      this.#unshared.add(id);
      this.#owners?.own(entry);
    }
  }

  /** Releases a result without readers, unless the run shows it or could not compute it again. */
  #release(id: string): boolean {
    const { outputNode, writesFiles, hasUi, notIdempotent } = this.#nodes.get(id)!.definition;
    if (this.#isRoot.has(id) || outputNode || writesFiles || hasUi || notIdempotent) return false;
    const entry = this.#results.get(id);
    if (entry === undefined) return false;
    this.#results.delete(id);
    this.#released.add(id);
    if (this.#unshared.delete(id)) this.#owners?.release(entry);
    const signature = this.#signatures.get(id);
    if (signature !== undefined) {
      const left = (this.#equals.get(signature) ?? 0) - 1;
      this.#equals.set(signature, left);
      if (left <= 0) this.#twins.delete(signature);
    }
    return true;
  }
}

const NONE: ReadonlySet<string> = new Set();

/** These nodes and all that follow from them. */
function withReaders(
  first: ReadonlySet<string>,
  nodes: ReadonlyMap<string, PreparedNode>,
  order: readonly string[],
): ReadonlySet<string> {
  if (first.size === 0) return first;
  const all = new Set<string>();
  for (const id of order) {
    const node = nodes.get(id);
    if (first.has(id) || node?.links.some(({ source }) => all.has(source))) all.add(id);
  }
  return all;
}

/** Whether neither a node of the run nor a model of its host retains a tensor. */
function retainsNothing({ builtIns, host }: MemoryFacts, nodes: Iterable<PreparedNode>): boolean {
  // a host copied from another one has to declare this itself
  const declared = host && Object.getOwnPropertyDescriptor(host, "retainsNoTensors");
  if (host !== undefined && (declared?.value !== true || declared.enumerable === true)) return false;
  for (const { definition } of nodes) if (builtIns?.get(definition.key) !== definition) return false;
  return true;
}

/** Footprints of results, which never change; a cache hands out the same results to every run. */
const footprints = new WeakMap<Entry, Footprint>();

/** Counts the owners of each buffer among a run's results and returns a buffer to its pool with the last of them. */
class BufferOwners {
  /** Number of results of only this run that own the buffer. */
  readonly #owners = new Map<Memory, number>();
  /** Buffers of results that a cache holds or held: other runs may read them, so they never return to a pool. */
  readonly #shared = new Set<Memory>();
  /** True once a result was too large to measure: it may hold any buffer. */
  #hasUnmeasured = false;

  /** Marks the buffers of a result that a cache or an equal node of the run may hold as well. */
  share(entry: Entry): void {
    for (const buffer of this.#buffersOf(entry)) this.#shared.add(buffer);
  }

  /** Adds a result that only this run holds. */
  own(entry: Entry): void {
    for (const buffer of this.#buffersOf(entry)) this.#owners.set(buffer, (this.#owners.get(buffer) ?? 0) + 1);
  }

  /** Removes a result added by `own` once its last reader is done. */
  release(entry: Entry): void {
    for (const buffer of this.#buffersOf(entry)) {
      const left = (this.#owners.get(buffer) ?? 0) - 1;
      this.#owners.set(buffer, left);
      if (left === 0 && !this.#hasUnmeasured && !this.#shared.has(buffer)) releaseMemory(buffer);
    }
  }

  #buffersOf(entry: Entry): readonly Memory[] {
    const footprint = footprints.get(entry) ?? measure(entry);
    footprints.set(entry, footprint);
    if (!footprint.isComplete) this.#hasUnmeasured = true;
    return footprint.buffers;
  }
}
