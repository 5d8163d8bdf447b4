import { rm, rmdir } from "node:fs/promises";
import { basename, dirname, isAbsolute, resolve } from "node:path";
import { onAbort } from "../base/abort.js";
import { LatentkitError } from "../base/errors.js";
import type { Job } from "../graph/job.js";
import { printJson } from "../io/json/lossless.js";
import type { Attempt, CreateRunner, Runner } from "../render/batch/runner.js";
import type { Config } from "../render/config/config.js";
import { printJob } from "../render/job.js";
import type { RunnerItem } from "../render/threads/messages.js";
import { PACK_NAME, printMessage, reviveError } from "./batch/batch-message.js";
import { BatchRuns, type RunEnd } from "./batch/batch-runs.js";
import { type Pending, publishReply, takeChunk } from "./batch/chunks.js";
import { type FileStore, localFiles } from "./hooks/files/file-store.js";
import { openFiles, openPostgres, refusingStore, requirePostgres } from "./parts.js";

/** Makes runners whose items the workers of a configuration's store render. Throws config.invalid. */
export function createStoreRunners(config: Config, report: (text: string) => void): CreateRunner {
  requirePostgres(config);
  const files = openFiles(config) ?? localFiles;
  return (graph, job, { signal }, concurrency = RUNS) => {
    const openRuns = async (changed: () => void) => {
      const store = await openPostgres(config.store);
      const runs = new BatchRuns(store, { changed });
      await refusingStore(() => runs.open()).catch(async (error: unknown) => {
        await store.close();
        throw error;
      });
      return runs;
    };
    return new StoreRunner({ graph, job, signal, concurrency, files, openRuns, report });
  };
}

/** Items that are held at most, so that runs of many small ones can be made. */
const MOST_ITEMS = 512;
/** Runs that are queued or running at the same time. */
const RUNS = 32;
/** Runs that are queued before any worker is known. */
const FIRST_RUNS = 4;
const NOTICE_MS = 10_000;
/** Share of the newest run in the time that an item is taken to need. */
const NEWEST = 0.3;

const INTERRUPTED: Attempt = { status: "interrupted", files: [], warnings: [], leftOut: [], written: [] };

export interface StoreRunnerOptions {
  readonly graph: string;
  readonly job: Job;
  readonly signal: AbortSignal | undefined;
  /** Most runs at the same time. */
  readonly concurrency: number;
  readonly files: FileStore;
  /** Makes the runs; `changed` is called when some have started or ended. */
  readonly openRuns: (changed: () => void) => Promise<BatchRuns>;
  /** Receives a sentence for a person. */
  readonly report: (text: string) => void;
}

// Runs of half a second, twice as many as workers render at once: what waits in the queue is what Ctrl-C takes back.
// decisions: Workers return bytes and the batch publishes them
/** Renders the items of a batch in the workers of a store: some items a run, which this process publishes. */
class StoreRunner implements Runner {
  readonly slots = MOST_ITEMS;
  readonly concurrency: number;
  readonly #options: StoreRunnerOptions;
  readonly #job: string;
  readonly #lanes: number[];
  readonly #cleared = new Map<string, Promise<void>>();
  readonly #open = new Set<Pending>();
  readonly #work = new Set<Promise<void>>();
  #pending: Pending[] = [];
  #runs: BatchRuns | undefined;
  #mostRunning = 0;
  #itemMs: number | undefined;
  #isPumpDue = false;
  #isStopped = false;
  #failure: { readonly error: unknown } | undefined;
  #notice: NodeJS.Timeout | undefined;
  #leave = () => {};

  constructor(options: StoreRunnerOptions) {
    this.#options = options;
    this.concurrency = options.concurrency;
    this.#lanes = Array.from({ length: options.concurrency }, (_, lane) => lane);
    // each worker has its own devices, keys and folders
    const { device, config, cacheDir, inputDir = "input", ...job } = options.job;
    this.#job = printJob({ ...job, inputDir: resolve(inputDir) });
  }

  async ready(): Promise<void> {
    const { openRuns, signal, report } = this.#options;
    this.#runs = await openRuns(() => this.#seeRunning());
    this.#leave = onAbort(signal, () => this.#abort());
    const sentence = "No worker has claimed an item yet: start `latentkit worker` with the same store.";
    this.#notice = setTimeout(() => report(sentence), NOTICE_MS);
  }

  run(item: RunnerItem): Promise<Attempt> {
    return this.#add(item, false);
  }

  runAlone(item: RunnerItem): Promise<Attempt> {
    return this.#add(item, true);
  }

  stop(): void {
    this.#isStopped = true;
    for (const { resolve } of this.#pending.splice(0)) resolve(INTERRUPTED);
    this.#track(this.#runs?.cancel(["queued"]));
  }

  async close(): Promise<void> {
    clearTimeout(this.#notice);
    this.#leave();
    this.stop();
    await this.#runs?.close();
    while (this.#work.size > 0) await Promise.all(this.#work);
  }

  #abort(): void {
    this.stop();
    this.#track(this.#runs?.cancel(["queued", "running"]));
  }

  #add(item: RunnerItem, isAlone: boolean): Promise<Attempt> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure.error);
    if (this.#isStopped) return Promise.resolve(INTERRUPTED);
    return new Promise<Attempt>((resolve, reject) => {
      const pending: Pending = {
        item,
        isAlone,
        resolve: (attempt) => {
          this.#open.delete(pending);
          resolve(attempt);
        },
        reject,
      };
      this.#open.add(pending);
      this.#pending.push(pending);
      this.#pumpSoon();
    });
  }

  #pumpSoon(): void {
    if (this.#isPumpDue) return;
    this.#isPumpDue = true;
    setImmediate(() => {
      this.#isPumpDue = false;
      this.#pump();
    });
  }

  #pump(): void {
    // as many wait as run: a worker that ends a run finds the next one
    const most = Math.min(this.concurrency, Math.max(FIRST_RUNS, 2 * this.#mostRunning + 2));
    while (this.#pending.length > 0 && this.concurrency - this.#lanes.length < most) {
      const share = Math.ceil(this.#pending.length / Math.max(2, 2 * this.#mostRunning));
      const { chunk, rest } = takeChunk(this.#pending, this.#itemMs, share);
      this.#pending = rest;
      this.#track(this.#render(this.#lanes.shift()!, chunk));
    }
  }

  #seeRunning(): void {
    this.#mostRunning = Math.max(this.#mostRunning, this.#runs?.running ?? 0);
    if (this.#mostRunning > 0) clearTimeout(this.#notice);
    this.#pumpSoon();
  }

  /** Renders items in one run. Never rejects. */
  async #render(lane: number, chunk: readonly Pending[]): Promise<void> {
    try {
      const session = `batch-${chunk[0]!.item.names.batch}-${lane}`;
      await this.#clearOnce(session);
      const items = chunk.map(({ item: { values, passing, names } }) => {
        const { own, ...sent } = names;
        return { set: printJson(values), passing, names: { ...sent, isKept: false } };
      });
      const { graph } = this.#options;
      const end = this.#isStopped
        ? ({ state: "cancelled" } as const)
        : await this.#runs!.queue(session, printMessage({ graph, job: this.#job, items }));
      this.#lanes.unshift(lane);
      this.#pumpSoon();
      await this.#settle(chunk, end);
    } catch (error) {
      this.#fail(error);
    }
  }

  async #settle(chunk: readonly Pending[], end: RunEnd): Promise<void> {
    if (end.state === "succeeded") {
      const { files, job } = this.#options;
      const ms = await publishReply(chunk, end, job.outputDir!, files);
      this.#itemMs = this.#itemMs === undefined ? ms : NEWEST * ms + (1 - NEWEST) * this.#itemMs;
      clearTimeout(this.#notice);
      await removePack(end.pack?.path);
      return;
    }
    if (end.error?.code === "config.invalid") throw reviveError({ code: end.error.code, message: end.error.error });
    const attempt = this.#isStopped && end.state === "cancelled" ? INTERRUPTED : failedBy(end, chunk.length);
    for (const { resolve } of chunk) resolve(attempt);
  }

  /** Ends the batch: nothing more can be rendered. */
  #fail(error: unknown): void {
    this.#failure ??= { error };
    this.#pending = [];
    for (const { reject } of this.#open) reject(this.#failure.error);
    this.#open.clear();
  }

  #clearOnce(session: string): Promise<void> {
    let clearing = this.#cleared.get(session);
    if (clearing === undefined) {
      clearing = this.#runs!.clear(session).then((pack) => removePack(pack?.path));
      this.#cleared.set(session, clearing);
    }
    return clearing;
  }

  #track(work: Promise<void> | undefined): void {
    if (work === undefined) return;
    this.#work.add(work);
    void work.finally(() => this.#work.delete(work));
  }
}

/** Attempts at the items of a failed run; if there are several, each is retried alone. */
function failedBy({ state, error }: RunEnd, count: number): Attempt {
  const isLost = state === "interrupted" || state === "gone" || (state !== "cancelled" && count > 1);
  const reason = state === "failed" ? `its run failed: ${error?.error}` : "its worker was lost.";
  const cause = isLost
    ? new LatentkitError("thread.lost", `The item was not rendered: ${reason}`)
    : state === "cancelled"
      ? new LatentkitError("run.interrupted", "The run of the item was cancelled in the store.")
      : reviveError({ code: error?.code, message: error?.error });
  return { status: "failed", files: [], warnings: [], leftOut: [], error: cause, written: [] };
}

/** Removes a pack in a folder that workers share; objects of a bucket go by its lifecycle rule. */
async function removePack(path: string | undefined): Promise<void> {
  if (path === undefined || !isAbsolute(path) || basename(path) !== PACK_NAME) return;
  await rm(path, { force: true }).catch(() => undefined);
  await rmdir(dirname(path)).catch(() => undefined);
}
