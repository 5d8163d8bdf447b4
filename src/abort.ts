import { setMaxListeners } from "node:events";

/** Callbacks of a signal that share one listener: each of its own would draw Node's warning of a leak from the eleventh on. */
class Waiting {
  private readonly callbacks = new Set<() => void>();
  private readonly tell = () => {
    waitingOn.delete(this.signal);
    for (const callback of [...this.callbacks]) if (this.callbacks.has(callback)) callback();
  };

  constructor(private readonly signal: AbortSignal) {
    signal.addEventListener("abort", this.tell, { once: true });
    waitingOn.set(signal, this);
  }

  add(callback: () => void): () => void {
    // a callback that is given twice is told twice
    const own = () => callback();
    this.callbacks.add(own);
    return () => {
      if (!this.callbacks.delete(own) || this.callbacks.size > 0) return;
      this.signal.removeEventListener("abort", this.tell);
      if (waitingOn.get(this.signal) === this) waitingOn.delete(this.signal);
    };
  }
}

const waitingOn = new WeakMap<AbortSignal, Waiting>();

/**
 * Calls back once when the signal aborts, at once where it has. Returns a function that ends the wait; with the last wait
 * the listener leaves the signal. Callbacks must not throw.
 */
export function onAbort(signal: AbortSignal | undefined, callback: () => void): () => void {
  if (signal === undefined) return () => {};
  if (signal.aborted) {
    callback();
    return () => {};
  }
  return (waitingOn.get(signal) ?? new Waiting(signal)).add(callback);
}

/** One for all spans: to make one takes longer than many a node. */
const OVER = new DOMException("The run is over.", "AbortError");

/** The time from the beginning of some work to its end: what a node has left behind is told to stop then. */
export class Span {
  private abort: AbortController | undefined;
  private leave = () => {};
  private isOver = false;

  constructor(private readonly outer: AbortSignal | undefined) {}

  /** Aborted with the outer signal, and at the end. Any number may listen. */
  get signal(): AbortSignal {
    if (this.abort === undefined) {
      const abort = new AbortController();
      this.abort = abort;
      setMaxListeners(0, abort.signal);
      if (this.isOver) abort.abort(OVER);
      else this.leave = onAbort(this.outer, () => abort.abort(this.outer?.reason));
    }
    return this.abort.signal;
  }

  end(): void {
    this.isOver = true;
    if (this.abort === undefined) return;
    this.leave();
    if (!this.abort.signal.aborted) this.abort.abort(OVER);
  }
}
