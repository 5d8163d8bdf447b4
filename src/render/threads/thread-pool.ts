import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import type { ResourceLimits } from "node:worker_threads";
import { GRACE_MS, onAbort } from "../../base/abort.js";
import { describe, LatentkitError } from "../../base/errors.js";
import { createDiskCache } from "../../graph/disk-cache/disk-cache.js";
import type { Job } from "../../graph/job.js";
import type { FilesByName } from "../../io/files/input-text.js";
import { isPlainObject, printJson, printNonFinite } from "../../io/json/lossless.js";
import { loadNative } from "../../native/load.js";
import { printJob } from "../job.js";
import { createFold } from "../result.js";
import { bytesOf, pathOf } from "../source.js";
import type { RunnerItem, ThreadRun } from "./messages.js";
import type { ModelThread } from "./model-thread.js";
import { RenderThread, type RunListener, type ThreadResult, type ThreadSettings } from "./render-thread.js";

/** `setup` and `cacheDir`: each thread calls the setup module once and opens the disk cache. */
export interface ThreadPoolOptions extends Readonly<Pick<Job, "setup" | "cacheDir">> {
  /** Graphs that render at once, 1 to 256; one for each processor, at most 4, if absent. */
  readonly threads?: number;
  /** Graphs that one thread renders at once, in turns: while one waits for a disk, another computes. 1 if absent. */
  readonly runsPerThread?: number;
  /** Results of former runs that each thread keeps; 256 MiB if absent. */
  readonly cacheBytes?: number;
  /** Limits of each thread's JavaScript heap; tensors lie outside it. */
  readonly resourceLimits?: ResourceLimits;
  /** Time of a node after an abort before its thread is ended; 2,000 ms if absent. */
  readonly graceMs?: number;
  /** Models to render with; they outlive the pool. */
  readonly models?: ModelThread;
}

export interface ThreadPool {
  /**
   * `render` in a thread, in order of the calls; the setup and the disk cache are the pool's. Values in `outputs` are
   * described in words if they are not scalars. A thread that crashes, or has to be ended, fails only its own runs.
   * Throws usage.invalid for a job that cannot be sent.
   */
  render(graph: string | object, job?: Job, run?: RunListener & { readonly item?: RunnerItem }): Promise<ThreadResult>;
  /**
   * Makes a thread ready and has it check the graph: its setup, classes of nodes, keys of `set` and `redact`, inputs
   * that no item sets. `keys`: those that items may set; anything if absent. Rejects with what is wrong.
   */
  check(graph: string | object, job?: Job, keys?: readonly string[], signal?: AbortSignal): Promise<void>;
  /** Threads that exist now. */
  readonly size: number;
  /** Interrupts running graphs, refuses further ones and ends all threads. */
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
  const { cacheBytes = DEFAULT_CACHE_BYTES, models } = options;
  const cacheDir = options.cacheDir === undefined ? undefined : createDiskCache({ folder: options.cacheDir }).folder;
  return new Pool(threads, options.runsPerThread ?? 1, {
    models,
    data: { setup: options.setup?.href, cacheBytes, cacheDir, isBlocking: threads >= availableParallelism() },
    resourceLimits: options.resourceLimits,
    graceMs: options.graceMs ?? GRACE_MS,
  });
}

class Pool implements ThreadPool {
  /** In order of last use, most recent last. */
  readonly #threads = new Set<RenderThread>();
  #free: number;
  /** Runs that wait for a free thread; called with false if they do not get one. */
  readonly #waiting = new Set<(isTurn: boolean) => void>();
  #isClosed = false;
  /** A job never changes: a batch's is printed once for all items. */
  readonly #texts = new WeakMap<Job, string>();
  readonly #files = new WeakMap<Job, FilesByName>();
  readonly #limit: number;
  readonly #settings: ThreadSettings;

  constructor(limit: number, runsPerThread: number, settings: ThreadSettings) {
    this.#limit = limit;
    this.#settings = settings;
    this.#free = limit * runsPerThread;
    rendering.set(this, limit);
    shareProcessors();
  }

  get size(): number {
    return this.#threads.size;
  }

  render(
    graph: string | object,
    job: Job = {},
    { item, ...listener }: RunListener & { readonly item?: RunnerItem } = {},
  ): Promise<ThreadResult> {
    const sent = item && { ...item, values: printJson(item.values) };
    return this.#dispatch({ type: "run", item: sent }, graph, job, listener);
  }

  async check(graph: string | object, job: Job = {}, keys?: readonly string[], signal?: AbortSignal): Promise<void> {
    const { error } = await this.#dispatch({ type: "check", keys }, graph, job, { signal });
    if (error !== undefined) throw error;
  }

  async #dispatch(
    more: Pick<ThreadRun, "type" | "item" | "keys">,
    graph: string | object,
    job: Job,
    listener: RunListener,
  ): Promise<ThreadResult> {
    const outputDir = resolve(job.outputDir ?? "out");
    // job and graph travel as JSON text, which keeps every digit and the order of the keys
    const run = { ...more, graph: sendableGraph(graph), job: this.#textOf(job), files: this.#filesOf(job) };
    if (!(await this.#turn(listener.signal))) return { ...createFold(outputDir).end(), status: "interrupted" };
    let thread: RenderThread | undefined;
    try {
      thread = this.#takeThread();
      return await thread.run(run, outputDir, listener);
    } finally {
      if (this.#isClosed && thread?.load === 0) thread.end();
      this.#release();
    }
  }

  #textOf(job: Job): string {
    const text = this.#texts.get(job) ?? printJob(job);
    this.#texts.set(job, text);
    return text;
  }

  // Bytes are copied to threads, not moved: they belong to the caller.
  /** Files without the rest of their memory, which would be sent with them. */
  #filesOf(job: Job): FilesByName | undefined {
    if (job.files === undefined) return undefined;
    const entries = Object.entries(job.files).map(([name, bytes]) => [name, alone(bytes)]);
    const files = this.#files.get(job) ?? (Object.fromEntries(entries) as FilesByName);
    this.#files.set(job, files);
    return files;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    rendering.delete(this);
    shareProcessors();
    for (const next of this.#waiting) next(false);
    for (const thread of this.#threads) {
      if (thread.load === 0) thread.end();
      else thread.abortAll();
    }
    await Promise.all([...this.#threads].map(({ ended }) => ended));
  }

  /** The idle thread that ran last, whose cache is warmest; else a new one; else the least busy. */
  #takeThread(): RenderThread {
    const alive = [...this.#threads].filter(({ isAlive }) => isAlive);
    const idle = alive.findLast(({ load }) => load === 0);
    const least = Math.min(...alive.map(({ load }) => load));
    const used = idle ?? (alive.length < this.#limit ? undefined : alive.find(({ load }) => load === least));
    if (used !== undefined) {
      this.#threads.delete(used);
      this.#threads.add(used);
      return used;
    }
    const started = new RenderThread(this.#settings);
    this.#threads.add(started);
    void started.ended.then(() => this.#threads.delete(started));
    return started;
  }

  /** Waits for a free thread, first come, first served; false if the run is aborted or the pool closes before. */
  async #turn(signal: AbortSignal | undefined): Promise<boolean> {
    if (this.#isClosed || signal?.aborted) return false;
    if (this.#free > 0) {
      this.#free--;
      return true;
    }
    return new Promise((resolve) => {
      const stop = () => next(false);
      const next = (isTurn: boolean) => {
        this.#waiting.delete(next);
        leave();
        resolve(isTurn);
      };
      this.#waiting.add(next);
      const leave = onAbort(signal, stop);
    });
  }

  #release(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#free++;
    else next(true);
  }
}

/** Objects travel as text with their NaN, which readGraph refuses by node and input. */
function sendableGraph(graph: string | object): string | Uint8Array {
  const bytes = bytesOf(graph);
  if (bytes !== undefined) return Uint8Array.from(bytes);
  if (graph instanceof URL) return pathOf(graph);
  if (typeof graph === "string") return graph;
  if (isPlainObject(graph)) return printNonFinite(graph);
  throw new LatentkitError("graph.invalid", `Graph: expected an object of nodes by id, received ${describe(graph)}.`);
}

const alone = (bytes: Uint8Array): Uint8Array =>
  bytes.byteLength === bytes.buffer.byteLength ? bytes : Uint8Array.from(bytes);

/** Threads that each open pool may have. */
const rendering = new Map<Pool, number>();

/** All threads share one native pool: it gets the processors they leave. LATENTKIT_THREADS overrides it. */
function shareProcessors(): void {
  if (process.env.LATENTKIT_THREADS) return;
  let threads = 0;
  for (const limit of rendering.values()) threads += limit;
  loadNative().setThreads(Math.max(1, availableParallelism() - Math.max(0, threads - 1)));
}
