import { setMaxListeners } from "node:events";
import { LatentkitError } from "./errors.js";

/** Callbacks of a signal that share one listener: Node warns of a leak from the eleventh listener on. */
class SharedListener {
  readonly #callbacks = new Set<() => void>();
  readonly #callAll = () => {
    listeners.delete(this.#signal);
    for (const callback of [...this.#callbacks]) if (this.#callbacks.has(callback)) callback();
  };
  readonly #signal: AbortSignal;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener("abort", this.#callAll, { once: true });
    listeners.set(signal, this);
  }

  add(callback: () => void): () => void {
    // a callback that is added twice is called twice
    const own = () => callback();
    this.#callbacks.add(own);
    return () => {
      if (!this.#callbacks.delete(own) || this.#callbacks.size > 0) return;
      this.#signal.removeEventListener("abort", this.#callAll);
      if (listeners.get(this.#signal) === this) listeners.delete(this.#signal);
    };
  }
}

const listeners = new WeakMap<AbortSignal, SharedListener>();

// One listener for each signal: Node warns from the eleventh on, and the limit of a caller's signal is not ours to
// change.
/**
 * Calls back once when the signal aborts, at once if it has aborted. Returns a function that removes the callback; the
 * last one removes the listener from the signal. Callbacks must not throw.
 */
export function onAbort(signal: AbortSignal | undefined, callback: () => void): () => void {
  if (signal === undefined) return () => {};
  if (signal.aborted) {
    callback();
    return () => {};
  }
  return (listeners.get(signal) ?? new SharedListener(signal)).add(callback);
}

/** Error of interrupted work: the signal's reason if it has aborted, else run.interrupted with the sentence. */
export const interruption = (signal: AbortSignal | undefined, sentence: string): unknown =>
  signal?.aborted ? signal.reason : new LatentkitError("run.interrupted", sentence);

/** How long to wait for a node after an abort. */
export const GRACE_MS = 2000;

/**
 * Waits for work that listens to the signal. Rejects with the signal's reason if the work continues for longer than the
 * grace after the abort: a node that does not listen is abandoned.
 */
export function orGivenUp<T>(work: Promise<T>, signal: AbortSignal | undefined, graceMs: number): Promise<T> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined;
    const leave = onAbort(signal, () => {
      timer = setTimeout(() => reject(signal.reason), graceMs);
    });
    const settle = () => {
      leave();
      clearTimeout(timer);
    };
    // an abandoned node's error is ignored
    work.finally(settle).then(resolve, reject);
  });
}

/** One reason for all spans: making one takes longer than running many nodes. */
const OVER = new DOMException("The run is over.", "AbortError");

/** A span of work whose signal aborts at its end, so that work that a node has left behind stops. */
export class Span {
  #abort: AbortController | undefined;
  #unsubscribe = () => {};
  #ended = false;
  readonly #outer: AbortSignal | undefined;

  constructor(outer: AbortSignal | undefined) {
    this.#outer = outer;
  }

  /** Signal that aborts with the outer signal, and at the end. Any number of listeners may be added. */
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      const abort = new AbortController();
      this.#abort = abort;
      setMaxListeners(0, abort.signal);
      if (this.#ended) abort.abort(OVER);
      else this.#unsubscribe = onAbort(this.#outer, () => abort.abort(this.#outer?.reason));
    }
    return this.#abort.signal;
  }

  get isOver(): boolean {
    return this.#ended;
  }

  end(): void {
    this.#ended = true;
    if (this.#abort === undefined) return;
    this.#unsubscribe();
    if (!this.#abort.signal.aborted) this.#abort.abort(OVER);
  }
}

/** Milliseconds after which timers, sockets and signals would starve. */
const MAX_BUSY_MS = 10;

/** Lets the event loop turn during long work. */
export class YieldTimer {
  #last = performance.now();

  get isDue(): boolean {
    return performance.now() - this.#last > MAX_BUSY_MS;
  }

  async yield(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.#last = performance.now();
  }
}
