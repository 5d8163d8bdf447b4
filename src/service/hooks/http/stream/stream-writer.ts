import type { ServerResponse } from "node:http";
import { type Clock, systemClock, type Timer, within } from "../../clock.js";
import { HookError } from "../../hook-error.js";
import { type EncodedSlice, KEEP_ALIVE_FRAME, type SliceHolder, type StreamMemory } from "./stream-memory.js";

const KEEP_ALIVE_MS = 15_000;

/**
 * Writes to one reader, no faster than it reads. A reader is cut where memory is short (and by `watchWrites`, where it
 * reads nothing for too long). Sends a comment every 15 s, unless bytes wait.
 */
export class StreamWriter implements SliceHolder {
  readonly #res: ServerResponse;
  readonly #clock: Clock;
  readonly #memory: StreamMemory;
  readonly #slowBytes: number;
  /** Number of writes that have not left the process. */
  #unsent = 0;
  #keepAlive: Timer | undefined;
  #onMoved: (() => void) | undefined;

  constructor(res: ServerResponse, clock: Clock, memory: StreamMemory, slowBytes: number) {
    this.#res = res;
    this.#clock = clock;
    this.#memory = memory;
    this.#slowBytes = slowBytes;
    this.#scheduleKeepAlive();
    res.once("close", () => {
      this.#memory.leave(this);
      this.#keepAlive?.cancel();
      this.#onMoved?.();
    });
  }

  /** Whether the reader is still there. */
  get isOpen(): boolean {
    return !this.#res.destroyed;
  }

  cut(): void {
    this.#res.destroy();
  }

  write(frame: string): void {
    this.#track((done) => this.#res.write(frame, done));
  }

  /** Writes shared bytes, which count once for all their readers. */
  writeSlice(slice: EncodedSlice): void {
    this.#memory.hold(this, slice);
    this.#track((done) =>
      this.#res.write(slice.bytes, () => {
        this.#memory.moved(this, slice);
        done();
      }),
    );
  }

  /** Resolves at once or, where too many bytes wait, when they have left or the reader has. */
  async ready(): Promise<void> {
    if (this.#res.writableLength <= this.#slowBytes && !this.#memory.isTight) return;
    while (this.isOpen && this.#unsent > 0) {
      await new Promise<void>((resolve) => {
        this.#onMoved = resolve;
      });
    }
  }

  /** Ends the stream after everything written. */
  end(): void {
    this.#keepAlive?.cancel();
    if (this.isOpen) this.#res.end();
  }

  #track(send: (done: () => void) => void): void {
    this.#unsent++;
    send(() => {
      this.#unsent--;
      this.#onMoved?.();
    });
  }

  #scheduleKeepAlive(): void {
    this.#keepAlive = this.#clock.setTimer(KEEP_ALIVE_MS, () => {
      if (this.#unsent === 0) this.write(KEEP_ALIVE_FRAME);
      this.#scheduleKeepAlive();
    });
  }
}

/** Counts open streams, and ends them all when the service stops. */
export class StreamSlots {
  readonly #limits: { readonly streams: number; readonly streams_per_run: number };
  readonly #perRun = new Map<string, number>();
  readonly #open = new Set<() => void>();
  readonly #whenEmpty: (() => void)[] = [];

  constructor(limits: { streams: number; streams_per_run: number }) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#open.size;
  }

  /** Takes a slot and returns the function that releases it. `cut` ends the stream. Fails with rate_limited. */
  take(runId: string, cut: () => void): () => void {
    const streamsOfRun = this.#perRun.get(runId) ?? 0;
    const isFull = this.#open.size >= this.#limits.streams || streamsOfRun >= this.#limits.streams_per_run;
    if (isFull) throw new HookError("rate_limited", "too many open streams, try again later", { retryAfterSeconds: 5 });
    this.#perRun.set(runId, streamsOfRun + 1);
    this.#open.add(cut);
    return () => {
      if (!this.#open.delete(cut)) return;
      const left = this.#perRun.get(runId)! - 1;
      if (left === 0) this.#perRun.delete(runId);
      else this.#perRun.set(runId, left);
      if (this.#open.size === 0) for (const resolve of this.#whenEmpty.splice(0)) resolve();
    };
  }

  /** Waits until all streams have ended, `ms` at most, and cuts the rest. */
  async endAll(ms: number): Promise<void> {
    if (this.#open.size === 0) return;
    await within(systemClock, ms, new Promise<void>((resolve) => this.#whenEmpty.push(resolve)));
    for (const cut of [...this.#open]) cut();
  }
}

/** Resumes one waiter in each turn of the event loop, first come, first served. */
export class Turns {
  readonly #waiting: (() => void)[] = [];
  #isStepping = false;

  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (this.#isStepping) return;
      this.#isStepping = true;
      setImmediate(this.#step);
    });
  }

  readonly #step = (): void => {
    this.#waiting.shift()?.();
    this.#isStepping = this.#waiting.length > 0;
    if (this.#isStepping) setImmediate(this.#step);
  };
}
