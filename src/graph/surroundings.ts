import { FUNCTION, HOST, hasMethods, OBJECT, type OptionRules, REGISTRY, SIGNAL } from "../base/options.js";
import type { Host } from "../host/types.js";
import type { InputFiles } from "../io/files/input-files.js";
import type { OutputHandling } from "../io/files/output-files.js";
import type { Registry } from "../nodes/registry.js";
import type { DiskCache } from "./disk-cache/disk-cache.js";
import type { RunEvent } from "./events.js";
import type { Cache } from "./memory/cache.js";

/** Live objects around a run, which cannot be sent to another thread. */
export interface Surroundings {
  /** The nodes; those of the package if absent. */
  registry: Registry;
  /** Where models come from; the preview host if absent. */
  host?: Host;
  /** Results that runs share: what does not change between them is computed once. Without one, equal nodes of a run share theirs. */
  cache?: Cache;
  /** A cache on a disk, shared with other processes, for results that cost some time; nodes that write files run. */
  diskCache?: DiskCache;
  /** Names and receipts of saved images; if absent the next free counter, and receipts that name what a picture was made from. */
  outputHandling?: OutputHandling;
  /** Time for the nodes, and for dates in names; the system's if absent. */
  clock?: () => Date;
  /** Requests of nodes that reach the network; the global `fetch` if absent. */
  fetch?: typeof fetch;
  /** Aborts the run. */
  signal?: AbortSignal;
  /** Receives each event at once, before a node that blocks the thread begins. Must not throw. */
  onEvent?: (event: RunEvent) => void;
  /** @internal The run's input files; those of its job if absent. */
  inputs?: InputFiles;
  /** @internal The package's own nodes: the disk cache keeps results of these, and of others that have a `cacheVersion`. */
  builtIns?: Registry;
  /** @internal Listeners keep no values of the run's events: memory of results without readers is used again. */
  hasTransientEvents?: boolean;
  /** @internal The calling thread only renders: nodes may hold it while they read, decode and encode. */
  isBlocking?: boolean;
  /** @internal Nodes whose inputs differ in every run: a shared cache keeps neither their results nor what follows from them. */
  volatileNodes?: ReadonlySet<string>;
  /** @internal Nodes that write files do so in every run, whatever the cache holds; false if absent. */
  rewritesFiles?: boolean;
  /** @internal The graph that nodes see: if absent the one that runs, for null none. */
  metadataPrompt?: object | null;
}

// fields that no option sets
export type InternalField =
  | "inputs"
  | "builtIns"
  | "hasTransientEvents"
  | "isBlocking"
  | "volatileNodes"
  | "rewritesFiles"
  | "metadataPrompt";

export const SURROUNDINGS_RULES: OptionRules<Omit<Surroundings, InternalField>> = {
  registry: REGISTRY,
  host: HOST,
  cache: ["a cache, as createCache makes one", (value) => hasMethods(value, "begin", "has")],
  diskCache: ["a disk cache, as createDiskCache makes one", (value) => hasMethods(value, "read", "write")],
  outputHandling: OBJECT,
  clock: FUNCTION,
  fetch: FUNCTION,
  signal: SIGNAL,
  onEvent: FUNCTION,
};
