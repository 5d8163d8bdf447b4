import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import type { ResourceLimits } from "node:worker_threads";
import { onAbort } from "../../abort.js";
import { describe, LatentkitError } from "../../errors.js";
import { createDiskCache } from "../../graph/disk-cache/disk-cache.js";
import type { RunEvent } from "../../graph/events.js";
import type { ItemNames } from "../../io/item-files.js";
import { printJson } from "../../io/json-lossless.js";
import { loadNative } from "../../native/load.js";
import { GRACE_MS } from "../give-up.js";
import { createFold, type RenderOptions } from "../render.js";
import { RenderThread, type ThreadResult, type ThreadSettings } from "./render-thread.js";
import type { ThreadRun } from "./thread.js";

export interface ThreadPoolOptions {
  /** Graphs that render at once, 1 to 256; one for each processor, at most 4, where absent. */
  readonly threads?: number;
  /** Graphs that one thread renders at once, in turns: while one waits for a disk, another computes. 1 where absent. */
  readonly runsPerThread?: number;
  /** A module whose default export (or `setup`) is `() => ({ registry, host })`; each thread calls it once. */
  readonly setup?: URL;
  /** Results of former runs that each thread keeps; 256 MiB where absent. */
  readonly cacheBytes?: number;
  /** Folder of a disk cache, which each thread opens; none where absent. */
  readonly cacheDir?: string;
  /** Of each thread's JavaScript heap; tensors lie outside it. */
  readonly resourceLimits?: ResourceLimits;
  /** What a node has after an abort before its thread is ended; 2,000 ms where absent. */
  readonly graceMs?: number;
}

/** What can be sent to a thread, of `render`'s options. */
export interface ThreadRenderOptions
  extends Pick<
    RenderOptions,
    | "set"
    | "targets"
    | "outputDir"
    | "inputDir"
    | "classAliases"
    | "extraPnginfo"
    | "metadata"
    | "redact"
    | "config"
    | "partial"
    | "allowNetwork"
    | "device"
    | "signal"
  > {
  /** Hears every event; tensors in it are described in words, progress comes at most 25 times a second. */
  onEvent?(event: RunEvent): void;
  readonly passing?: readonly string[];
  /** For a check: what items may set; anything where absent. */
  readonly keys?: readonly string[];
  /** Names of an item of a batch; the next free counters where absent. */
  readonly names?: ItemNames;
}

export interface ThreadPool {
  /**
   * `render` in a thread, in order of the calls. Values in `outputs` are described in words where they are no scalars.
   * A thread that crashes, or has to be ended, fails its runs alone.
   */
  render(graph: string | object, options?: ThreadRenderOptions): Promise<ThreadResult>;
  /**
   * Makes a thread ready and has it look at the graph: its setup, classes of nodes, keys of `set` and `redact`, inputs
   * that no item sets. Rejects with what is wrong.
   */
  check(graph: string | object, options?: ThreadRenderOptions): Promise<void>;
  /** Threads that exist now. */
  readonly size: number;
  /** Interrupts what runs, refuses what follows and ends all threads. */
  close(): Promise<void>;
}

const DEFAULT_CACHE_BYTES = 2 ** 28;
const MAX_THREADS = 256;

/** A pool of worker threads that render graphs. Threads start when needed; idle ones let the process end. */
export function createThreadPool(options: ThreadPoolOptions = {}): ThreadPool {
  const threads = options.threads ?? Math.min(4, availableParallelism());
  if (!Number.isInteger(threads) || threads < 1 || threads > MAX_THREADS) {
    const message = `threads: expected a whole number from 1 to ${MAX_THREADS}, received ${describe(threads)}.`;
    throw new LatentkitError("value.out-of-range", message);
  }
  const { cacheBytes = DEFAULT_CACHE_BYTES } = options;
  const cacheDir = options.cacheDir === undefined ? undefined : createDiskCache({ folder: options.cacheDir }).folder;
  return new Pool(threads, options.runsPerThread ?? 1, {
    data: { setup: options.setup?.href, cacheBytes, cacheDir, encodesHere: threads >= availableParallelism() },
    resourceLimits: options.resourceLimits,
    graceMs: options.graceMs ?? GRACE_MS,
  });
}

class Pool implements ThreadPool {
  /** The one that was last at work last. */
  private readonly threads = new Set<RenderThread>();
  private free: number;
  /** Runs that wait for a free thread; told false, they get none. */
  private readonly waiting = new Set<(isTurn: boolean) => void>();
  private isClosed = false;

  constructor(
    private readonly limit: number,
    runsPerThread: number,
    private readonly settings: ThreadSettings,
  ) {
    this.free = limit * runsPerThread;
    rendering.set(this, limit);
    shareProcessors();
  }

  get size(): number {
    return this.threads.size;
  }

  render(graph: string | object, options: ThreadRenderOptions = {}): Promise<ThreadResult> {
    return this.ask("run", graph, options);
  }

  async check(graph: string | object, options: ThreadRenderOptions = {}): Promise<void> {
    const { error } = await this.ask("check", graph, options);
    if (error !== undefined) throw error;
  }

  private async ask(
    type: "run" | "check",
    graph: string | object,
    options: ThreadRenderOptions,
  ): Promise<ThreadResult> {
    const { signal, onEvent } = options;
    const run = sendable(graph, options);
    if (!(await this.turn(signal))) return { ...createFold(run.outputDir).end(), status: "interrupted" };
    let thread: RenderThread | undefined;
    try {
      thread = this.takeThread();
      return await thread.run(run, (event) => onEvent?.(event), signal, type);
    } finally {
      if (this.isClosed && thread?.load === 0) thread.end();
      this.release();
    }
  }

  async close(): Promise<void> {
    this.isClosed = true;
    rendering.delete(this);
    shareProcessors();
    for (const next of this.waiting) next(false);
    for (const thread of this.threads) {
      if (thread.load === 0) thread.end();
      else thread.abortAll();
    }
    await Promise.all([...this.threads].map(({ ended }) => ended));
  }

  /** An idle one, of which the one that ran last has the warmest cache; else a new one; else the least busy. */
  private takeThread(): RenderThread {
    const alive = [...this.threads].filter(({ isAlive }) => isAlive);
    const idle = alive.findLast(({ load }) => load === 0);
    const least = Math.min(...alive.map(({ load }) => load));
    const used = idle ?? (alive.length < this.limit ? undefined : alive.find(({ load }) => load === least));
    if (used !== undefined) {
      this.threads.delete(used);
      this.threads.add(used);
      return used;
    }
    const made = new RenderThread(this.settings);
    this.threads.add(made);
    void made.ended.then(() => this.threads.delete(made));
    return made;
  }

  /** Waits for a free thread, first come, first served; false where the run is aborted or the pool closes before. */
  private async turn(signal: AbortSignal | undefined): Promise<boolean> {
    if (this.isClosed || signal?.aborted) return false;
    if (this.free > 0) {
      this.free--;
      return true;
    }
    return new Promise((resolve) => {
      const stop = () => next(false);
      const next = (isTurn: boolean) => {
        this.waiting.delete(next);
        leave();
        resolve(isTurn);
      };
      this.waiting.add(next);
      const leave = onAbort(signal, stop);
    });
  }

  private release(): void {
    const [next] = this.waiting;
    if (next === undefined) this.free++;
    else next(true);
  }
}

/** A graph and numbers in `set` travel as JSON text, which keeps every digit and the order of the keys. */
function sendable(graph: string | object, options: ThreadRenderOptions): ThreadRun {
  const { set, extraPnginfo, targets, outputDir, inputDir, classAliases, metadata, redact, config, names } = options;
  return {
    graph: typeof graph === "string" ? graph : printJson(graph),
    json: printJson({ set, extraPnginfo }),
    targets,
    outputDir: resolve(outputDir ?? "out"),
    inputDir,
    classAliases,
    metadata,
    redact,
    config,
    partial: options.partial,
    allowNetwork: options.allowNetwork,
    device: options.device,
    names,
    passing: options.passing,
    keys: options.keys,
    isQuiet: options.onEvent === undefined,
  };
}

/** Threads that each open pool may have. */
const rendering = new Map<Pool, number>();

/** All threads share one native pool: it gets the processors they leave. LATENTKIT_THREADS has the last word. */
function shareProcessors(): void {
  if (process.env.LATENTKIT_THREADS) return;
  let threads = 0;
  for (const limit of rendering.values()) threads += limit;
  loadNative().setThreads(Math.max(1, availableParallelism() - Math.max(0, threads - 1)));
}
