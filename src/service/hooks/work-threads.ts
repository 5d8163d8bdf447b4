import { getHeapStatistics } from "node:v8";
import { type MessagePort, parentPort, type ResourceLimits } from "node:worker_threads";
import { onAbort, orGivenUp } from "../../base/abort.js";
import { LoadedWorker } from "../../render/threads/loaded-worker.js";
import type { Clock, Timer } from "./clock.js";
import { HookError } from "./hook-error.js";

/** Time after which a thread without work ends, and its memory with it. */
const IDLE_MS = 30_000;
/** Memory of arrays beyond which a thread ends at once: V8 may keep them for long where nothing else is allocated. */
const MOST_KEPT_BYTES = 64 * 2 ** 20;

export interface WorkThreadsOptions {
  /** Program of a thread, which calls `serveWork`. */
  readonly program: URL;
  readonly resourceLimits?: ResourceLimits;
  readonly mostThreads: number;
  /** Most work that waits for a thread. */
  readonly mostWaiting: number;
  /** Time of one work, from its preparation to its result. */
  readonly mostMs: number;
  /** Sentence that refuses work that takes longer, or more memory than its thread has. */
  readonly refusal: string;
  readonly clock: Clock;
}

/** Data that go to a thread, or come from it; the memory of `moved` goes with them. */
export interface Sent<T> {
  readonly value: T;
  readonly moved?: readonly ArrayBuffer[];
}

/** Work for a thread, or its result where that is known without one. */
export type Prepared<Work, Done> = Sent<Work> | { readonly done: Done };

type FromThread<Done> =
  | { readonly type: "loaded" }
  | { readonly type: "done"; readonly value: Done; readonly isSpent: boolean };

// Loading a thread takes up to a third of a second, so it stays for half a minute; one whose client left is ended.
/** Threads that do work of requests, in the order in which it comes. They start when needed and keep no process alive. */
export class WorkThreads<Work, Done> {
  readonly #options: WorkThreadsOptions;
  readonly #idle = new Map<LoadedWorker, Timer>();
  readonly #running = new Set<AbortController>();
  /** Each is called at its turn. */
  readonly #waiting = new Set<() => void>();
  #free: number;
  #isClosed = false;

  constructor(options: WorkThreadsOptions) {
    this.#options = options;
    this.#free = options.mostThreads;
  }

  /**
   * Prepares work at its turn, has a thread do it and returns the result. Rejects with the reason of `signal`, and then
   * ends a thread that is at it. Fails with rate_limited where too much waits, shutting_down, invalid_request and
   * internal.
   */
  async run(prepare: (signal: AbortSignal) => Promise<Prepared<Work, Done>>, signal: AbortSignal): Promise<Done> {
    await this.#turn(signal);
    const { clock, mostMs, refusal } = this.#options;
    const running = new AbortController();
    this.#running.add(running);
    const leave = onAbort(signal, () => running.abort(signal.reason));
    const timer = clock.setTimer(mostMs, () => running.abort(new HookError("invalid_request", refusal)));
    const done = this.#work(prepare, running.signal);
    // the turn is over once the thread is free or gone: another picture in memory would be one too many
    const end = () => {
      this.#running.delete(running);
      this.#release();
    };
    done.then(end, end);
    try {
      return await orGivenUp(done, running.signal, 0);
    } catch (error) {
      throw running.signal.aborted ? running.signal.reason : error;
    } finally {
      timer.cancel();
      leave();
    }
  }

  /** Ends all threads; what they do fails with shutting_down, as what follows. */
  close(): void {
    this.#isClosed = true;
    for (const running of this.#running) running.abort(new HookError("shutting_down"));
    for (const thread of this.#idle.keys()) this.#end(thread);
  }

  async #turn(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#isClosed) throw new HookError("shutting_down");
    if (this.#free > 0) {
      this.#free -= 1;
      return;
    }
    if (this.#waiting.size >= this.#options.mostWaiting) {
      throw new HookError("rate_limited", "too many requests of this kind at once, try again later", {
        retryAfterSeconds: 1,
      });
    }
    await new Promise<void>((resolve, reject) => {
      const go = () => {
        this.#waiting.delete(go);
        leave();
        resolve();
      };
      this.#waiting.add(go);
      const leave = onAbort(signal, () => {
        this.#waiting.delete(go);
        reject(signal.reason);
      });
    });
  }

  #release(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#free += 1;
    else next();
  }

  async #work(prepare: (signal: AbortSignal) => Promise<Prepared<Work, Done>>, signal: AbortSignal): Promise<Done> {
    if (this.#isClosed) throw new HookError("shutting_down");
    const work = await orGivenUp(prepare(signal), signal, 0);
    if ("done" in work) return work.done;
    signal.throwIfAborted();
    const thread = this.#take();
    try {
      const { value, isSpent } = await this.#reply(thread, work, signal);
      if (isSpent) await thread.terminate();
      else this.#rest(thread);
      return value;
    } catch (error) {
      await thread.terminate();
      throw error;
    }
  }

  #reply(thread: LoadedWorker, { value, moved = [] }: Sent<Work>, signal: AbortSignal) {
    return new Promise<FromThread<Done> & { readonly type: "done" }>((resolve, reject) => {
      const lose = (cause: unknown) => {
        const error = isTooMuch(cause)
          ? new HookError("invalid_request", this.#options.refusal, { cause })
          : new HookError("internal", undefined, { cause });
        settle(() => reject(error));
      };
      const take = (message: FromThread<Done>) => {
        if (message.type === "done") settle(() => resolve(message));
      };
      const settle = (finish: () => void) => {
        thread.off("message", take).off("error", lose).off("exit", lose);
        leave();
        finish();
      };
      thread.on("message", take).on("error", lose).on("exit", lose);
      const leave = onAbort(signal, () => settle(() => reject(signal.reason)));
      thread.postMessage(value, moved);
    });
  }

  #take(): LoadedWorker {
    const [idle] = this.#idle;
    if (idle === undefined) {
      const { program, resourceLimits } = this.#options;
      // an idle thread may fail: no work is lost
      return new LoadedWorker(program, { resourceLimits }).on("error", () => undefined);
    }
    const [thread, timer] = idle;
    timer.cancel();
    this.#idle.delete(thread);
    thread.ref();
    return thread;
  }

  #rest(thread: LoadedWorker): void {
    thread.unref();
    this.#idle.set(
      thread,
      this.#options.clock.setTimer(IDLE_MS, () => this.#end(thread)),
    );
    if (this.#isClosed) this.#end(thread);
  }

  #end(thread: LoadedWorker): void {
    this.#idle.get(thread)?.cancel();
    this.#idle.delete(thread);
    void thread.terminate();
  }
}

/** Whether a thread had too little memory for its work, or too small a stack. */
const isTooMuch = (error: unknown): boolean =>
  error instanceof RangeError || (error as NodeJS.ErrnoException).code === "ERR_WORKER_OUT_OF_MEMORY";

/** Serves work in the thread of a program. What it throws ends the thread. */
export function serveWork<Work, Done>(work: (value: Work) => Sent<Done> | Promise<Sent<Done>>): void {
  const port: MessagePort = parentPort!;
  port.on("message", async (value: Work) => {
    const done = await work(value);
    const isSpent = getHeapStatistics().external_memory > MOST_KEPT_BYTES;
    port.postMessage({ type: "done", value: done.value, isSpent }, done.moved ?? []);
  });
}
