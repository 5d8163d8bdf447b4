import { systemClock, type Timer } from "../../clock.js";
import { HookError } from "../../hook-error.js";

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
    let timer: Timer | undefined;
    await new Promise<void>((resolve) => {
      this.#whenEmpty.push(resolve);
      timer = systemClock.setTimer(ms, resolve, true);
    });
    timer?.cancel();
    for (const cut of [...this.#open]) cut();
  }
}
