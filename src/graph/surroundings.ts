import { FUNCTION, HOST, hasMethods, OBJECT, type OptionRules, REGISTRY, SIGNAL } from "../base/options.js";
import type { Host } from "../host/host.js";
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
  /** Results that runs share: unchanged nodes are computed once. Without it, equal nodes of a run share theirs. */
  cache?: Cache;
  /** A cache on a disk, shared with other processes, for results that take some time; nodes that write files always run. */
  diskCache?: DiskCache;
  /** Names and receipts of saved images; if absent the next free counter, and receipts that name what a picture was made from. */
  outputHandling?: OutputHandling;
  /** Clock of the nodes and of dates in names; the system's if absent. */
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
  /** @internal Listeners do not keep values of the run's events: memory of results without readers is reused. */
  hasTransientEvents?: boolean;
  /** @internal The calling thread only renders: nodes may hold it while they read, decode and encode. */
  isBlocking?: boolean;
  /** @internal Nodes whose inputs differ in every run: a shared cache keeps neither their results nor those that depend on them. */
  volatileNodes?: ReadonlySet<string>;
  /** @internal Nodes that write files do so in every run, even if the cache holds their results; false if absent. */
  rewritesFiles?: boolean;
  /** @internal The graph that nodes see: if absent, the one that runs; null: none. */
  metadataPrompt?: object | null;
}

// fields without an option
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
