import { availableParallelism } from "node:os";
import { describe, LatentkitError } from "../../errors.js";
import { createCache } from "../../graph/cache.js";
import { createDiskCache } from "../../graph/disk-cache/disk-cache.js";
import { parseGraph } from "../../graph/parse.js";
import { ItemFiles, type ItemNames, type WrittenFile } from "../../io/item-files.js";
import { defaultHost, defaultRegistry } from "../defaults.js";
import { refuseWrong } from "../refuse-wrong.js";
import { type RenderOptions, type RenderResult, render } from "../render.js";
import { type Made, runSetup } from "../setup-module.js";
import { readGraph } from "../source.js";
import { createThreadPool, type ThreadRenderOptions } from "../threads/thread-pool.js";
import type { ItemValues } from "./types.js";

/** What came of one attempt at an item. */
export interface Attempt {
  readonly status: RenderResult["status"];
  readonly files: RenderResult["files"];
  readonly warnings: readonly string[];
  /** Outputs that were left out. */
  readonly leftOut: readonly string[];
  readonly error?: LatentkitError;
  /** Absent where a lost thread left no word of what it had written. */
  readonly written?: readonly WrittenFile[];
}

export interface RunnerItem {
  readonly values: ItemValues;
  readonly names: ItemNames;
  /** Keys whose values the item before did not have. */
  readonly passing: readonly string[];
}

/** Renders items, several at once. */
export interface Runner {
  /** Attempts that make sense at once. */
  readonly slots: number;
  readonly concurrency: number;
  /**
   * Calls the setup module, if there is one, and looks at the graph with its nodes; `settable`: what items may set, where
   * that is known. Rejects with what is wrong.
   */
  ready(settable: readonly string[] | undefined): Promise<void>;
  /** Never rejects. */
  run(item: RunnerItem): Promise<Attempt>;
  /** Another try where a lost thread may have been another item's fault: in a thread of its own. */
  runAlone(item: RunnerItem): Promise<Attempt>;
  close(): Promise<void>;
}

/** Options of `render` that go for every item, and how many items run at once. */
export interface RunnerOptions extends Omit<RenderOptions, "cache" | "diskCache" | "output" | "onEvent" | "passing"> {
  /** Folder of a disk cache, see `createDiskCache`; none where absent. */
  readonly cacheDir?: string;
  /** Items that render at once, 1 to 256: worker threads, or turns where the options hold live objects. */
  readonly concurrency?: number;
}

/** While one item of a thread waits for its file, another one computes. */
const RUNS_PER_THREAD = 2;
/** What stays the same between items is used in each, so a small cache keeps it. */
const CACHE_BYTES = 2 ** 26;

/** Threads, unless the options hold objects that cannot be sent to one. */
export function createRunner(graph: string | object, options: RunnerOptions): Runner {
  const { concurrency = availableParallelism(), ...rest } = options;
  const { registry, host, clock, fetch } = rest;
  const isLive = [registry, host, clock, fetch].some((object) => object !== undefined);
  return isLive ? liveRunner(graph, rest, concurrency) : threadRunner(graph, rest, concurrency);
}

type PlaceOptions = Omit<RunnerOptions, "concurrency">;

function liveRunner(
  graph: string | object,
  { cacheDir, setup, ...options }: PlaceOptions,
  concurrency: number,
): Runner {
  let made: Made = {};
  const cache = createCache({ policy: "bytes", size: CACHE_BYTES });
  const diskCache = cacheDir === undefined ? undefined : createDiskCache({ folder: cacheDir });
  const run = async ({ values, names, passing }: RunnerItem): Promise<Attempt> => {
    const files = new ItemFiles(names);
    try {
      const result = await render(graph, {
        ...options,
        registry: options.registry ?? made.registry,
        host: options.host ?? made.host,
        set: merged(options, values),
        passing,
        cache,
        diskCache,
        output: { files },
      });
      if (result.status === "success") await files.commit();
      if (result.status === "interrupted") files.close();
      return { ...result, written: files.written };
    } catch (error) {
      return failed(error, files.written);
    }
  };
  const ready = async (keys: readonly string[] | undefined) => {
    if (setup === undefined) return;
    // once, not for each item
    made = await runSetup(setup);
    const { registry = made.registry ?? defaultRegistry, host = made.host ?? defaultHost } = options;
    refuseWrong(parseGraph(readGraph(graph).graph, options), { ...options, registry, host, keys });
  };
  return { slots: concurrency, concurrency, ready, run, runAlone: run, close: async () => {} };
}

function threadRunner(graph: string | object, options: PlaceOptions, concurrency: number): Runner {
  const { setup, cacheDir, ...rest } = options;
  const made = { setup, cacheBytes: CACHE_BYTES, cacheDir };
  const pool = createThreadPool({ ...made, threads: concurrency, runsPerThread: RUNS_PER_THREAD });
  // its threads start when it is needed
  const lonely = createThreadPool({ ...made, threads: 1 });
  const runIn =
    (which: typeof pool) =>
    async ({ values, names, passing }: RunnerItem) => {
      try {
        const sent: ThreadRenderOptions = { ...rest, set: merged(options, values), names, passing };
        return await which.render(graph, sent);
      } catch (error) {
        return failed(error, []);
      }
    };
  return {
    slots: concurrency * RUNS_PER_THREAD,
    concurrency,
    ready: async (keys) => {
      if (setup !== undefined) await pool.check(graph, { ...rest, keys });
    },
    run: runIn(pool),
    runAlone: runIn(lonely),
    close: async () => {
      await Promise.all([pool.close(), lonely.close()]);
    },
  };
}

const merged = ({ set }: RenderOptions, values: ItemValues): ItemValues =>
  set === undefined ? values : { ...set, ...values };

function failed(error: unknown, written: readonly WrittenFile[]): Attempt {
  const reason = error instanceof Error ? error.message : describe(error);
  const known =
    error instanceof LatentkitError ? error : new LatentkitError("node.failed", reason, {}, { cause: error });
  return { status: "failed", files: [], warnings: [], leftOut: [], error: known, written };
}
