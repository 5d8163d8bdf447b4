import { availableParallelism } from "node:os";
import { describe, LatentkitError } from "../../base/errors.js";
import type { Job } from "../../graph/job.js";
import { createCache } from "../../graph/memory/cache.js";
import { parseGraph } from "../../graph/parse.js";
import type { Surroundings } from "../../graph/surroundings.js";
import { ItemFiles, type WrittenFile } from "../../io/files/item-files.js";
import { refuseWrong } from "../refuse-wrong.js";
import { renderJob } from "../render.js";
import type { RunOutcome } from "../result.js";
import { readGraph } from "../source.js";
import { openSurroundings } from "../surroundings.js";
import type { RunnerItem } from "../threads/messages.js";
import type { ModelThread } from "../threads/model-thread.js";
import { createThreadPool, type ThreadPool } from "../threads/thread-pool.js";

/** Result of one attempt at an item. */
export interface Attempt {
  readonly status: RunOutcome["status"];
  readonly files: RunOutcome["files"];
  readonly warnings: readonly string[];
  /** Outputs that were left out. */
  readonly leftOut: readonly string[];
  readonly error?: LatentkitError;
  /** Absent if a thread was lost without reporting what it had written. */
  readonly written?: readonly WrittenFile[];
  /** Time that the item took; the duration of `run` if absent. */
  readonly ms?: number;
}

/** Renders items, several at once. */
export interface Runner {
  /** Number of attempts worth making at once. */
  readonly slots: number;
  readonly concurrency: number;
  /**
   * Calls the setup module, if there is one, and checks the graph with its nodes; `settable`: keys that items may set,
   * if they are known. Rejects with what is wrong.
   */
  ready(settable: readonly string[] | undefined): Promise<void>;
  /** Rejects only if no further item can be rendered, which ends the batch. */
  run(item: RunnerItem): Promise<Attempt>;
  /** Retries an item alone, in case another one crashed their thread. */
  runAlone(item: RunnerItem): Promise<Attempt>;
  /** Starts nothing more: items that wait inside end as interrupted. Absent if none waits. */
  stop?(): void;
  close(): Promise<void>;
}

/** Function that makes the runner of a batch. `graph`: JSON text; `job`: with absolute folders. */
export type CreateRunner = (
  graph: string,
  job: Job,
  surroundings: Partial<Surroundings>,
  concurrency: number | undefined,
  models: ModelThread | undefined,
) => Runner;

/** While one item of a thread waits for its file, another one computes. */
const RUNS_PER_THREAD = 2;
/** Each item uses the results that stay the same between items, so a small cache keeps them. */
const CACHE_BYTES = 2 ** 26;

/** Threads, unless there are live objects, which cannot be sent to one. `concurrency`: one for each processor if absent. */
export function createRunner(
  graph: string | object,
  job: Job,
  surroundings: Partial<Surroundings>,
  concurrency = availableParallelism(),
  models?: ModelThread,
): Runner {
  const { signal, ...live } = surroundings;
  if (Object.keys(live).length > 0) return liveRunner(graph, job, surroundings, concurrency);
  return threadRunner(graph, job, signal, concurrency, models);
}

function liveRunner(graph: string | object, job: Job, given: Partial<Surroundings>, concurrency: number): Runner {
  let surroundings: Surroundings;
  const run = async ({ values, names, passing }: RunnerItem): Promise<Attempt> => {
    const files = new ItemFiles(names);
    try {
      const own = { ...job, set: { ...job.set, ...values }, passing };
      const result = await renderJob(graph, own, { ...surroundings, outputHandling: { files } });
      if (result.status === "success") await files.commit();
      if (result.status === "interrupted") files.close();
      return { ...result, written: files.written };
    } catch (error) {
      return failed(error, files.written);
    }
  };
  const ready = async (settable: readonly string[] | undefined) => {
    // once, not for each item
    const cache = createCache({ policy: "bytes", size: CACHE_BYTES });
    surroundings = await openSurroundings(job, { ...given, cache });
    if (job.setup !== undefined) refuseWrong(parseGraph(readGraph(graph).graph, job), job, surroundings, settable);
  };
  return { slots: concurrency, concurrency, ready, run, runAlone: run, close: async () => {} };
}

function threadRunner(
  graph: string | object,
  job: Job,
  signal: AbortSignal | undefined,
  concurrency: number,
  models: ModelThread | undefined,
): Runner {
  const { setup, cacheDir } = job;
  const common = { setup, cacheDir, models, cacheBytes: CACHE_BYTES };
  const pool = createThreadPool({ ...common, threads: concurrency, runsPerThread: RUNS_PER_THREAD });
  // threads start when they are needed
  const lonely = createThreadPool({ ...common, threads: 1 });
  const runIn =
    (threads: ThreadPool) =>
    async ({ values, names, passing }: RunnerItem) => {
      try {
        return await threads.render(graph, job, { signal, item: { values, passing, names } });
      } catch (error) {
        return failed(error, []);
      }
    };
  return {
    slots: concurrency * RUNS_PER_THREAD,
    concurrency,
    ready: async (settable) => {
      if (setup !== undefined) await pool.check(graph, job, settable, signal);
    },
    run: runIn(pool),
    runAlone: runIn(lonely),
    close: async () => {
      await Promise.all([pool.close(), lonely.close()]);
    },
  };
}

/** Attempt at an item that threw. */
export function failed(error: unknown, written: readonly WrittenFile[]): Attempt {
  const reason = error instanceof Error ? error.message : describe(error);
  const cause =
    error instanceof LatentkitError ? error : new LatentkitError("node.failed", reason, {}, { cause: error });
  return { status: "failed", files: [], warnings: [], leftOut: [], error: cause, written };
}
