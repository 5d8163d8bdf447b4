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
  /** The nodes; those of the package where absent. */
  registry?: Registry;
  /** Where models come from; the preview host where absent. */
  host?: Host;
  /** Results that runs share: what does not change between them is computed once. Without one, equal nodes of a run share theirs. */
  cache?: Cache;
  /** A cache on a disk, shared with other processes, for results that cost some time; nodes that write files run. */
  diskCache?: DiskCache;
  /** Names and receipts of saved images; where absent the next free counter, and receipts that name what a picture was made from. */
  outputHandling?: OutputHandling;
  /** Time for the nodes, and for dates in names; the system's where absent. */
  clock?: () => Date;
  /** Requests of nodes that reach the network; the global `fetch` where absent. */
  fetch?: typeof fetch;
  /** Aborts the run. */
  signal?: AbortSignal;
  /** Receives each event at once, before a node that never lets go of the thread begins. Must not throw. */
  onEvent?: (event: RunEvent) => void;
}

export const SURROUNDINGS_RULES: OptionRules<Surroundings> = {
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

/** Surroundings as the executor takes them, with fields for callers inside the package alone. */
export interface RunSurroundings extends Readonly<Surroundings> {
  readonly registry: Registry;
  /** The run's input files; those of its job where absent. */
  readonly inputs?: InputFiles;
  /** The package's own nodes: the disk cache keeps results of these, and of others that have a `cacheVersion`. */
  readonly builtIns?: Registry;
  /** No listener retains values of the run's events after it has returned: memory of results without readers is used again. */
  readonly hasTransientEvents?: boolean;
  /** The calling thread only renders: nodes may hold it while they read, decode and encode. */
  readonly isBlocking?: boolean;
}
