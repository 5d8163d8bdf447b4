import type { Timer } from "../clock.js";
import type { Limits } from "../types.js";
import type { Engine } from "./run-task.js";

const INTERVAL_MS = 60_000;
/** Rows of one transaction: some 20 ms. */
const BUDGET = 2000;

/** Removes runs and keys that have outlived their retention: every minute, and when too many runs have ended. */
export class Retention {
  readonly #engine: Engine;
  readonly #retentionMs: number;
  readonly #keepRuns: number;
  #ended = 0;
  #timer: Timer | undefined;
  #sweeping: Promise<void> | undefined;
  #isStopped = false;

  constructor(engine: Engine, limits: Pick<Limits, "retention_hours" | "retention_runs">) {
    this.#engine = engine;
    this.#retentionMs = limits.retention_hours * 3600_000;
    this.#keepRuns = limits.retention_runs;
  }

  /** One more run has ended. */
  count(): void {
    this.#ended += 1;
    // a hundredth of slack: not every ending pays for a sweep
    if (this.#ended > this.#keepRuns + Math.floor(this.#keepRuns / 100)) void this.sweep();
  }

  /** Sweeps now and every minute. */
  start(): void {
    if (this.#isStopped) return;
    this.#timer?.cancel();
    this.#timer = this.#engine.clock.setTimer(INTERVAL_MS, () => this.start());
    void this.sweep();
  }

  sweep(): Promise<void> {
    this.#sweeping ??= this.#sweepAll();
    return this.#sweeping;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#sweeping;
  }

  async #sweepAll(): Promise<void> {
    const { store, mark, observer } = this.#engine;
    try {
      for (let more = true; more && !this.#isStopped; ) {
        await new Promise((resolve) => setImmediate(resolve));
        const nowMark = mark();
        const endedBefore = nowMark - this.#retentionMs;
        const swept = await store.sweep({ endedBefore, keepRuns: this.#keepRuns, nowMark, budget: BUDGET });
        this.#ended = swept.endedRuns;
        more = swept.more;
      }
    } catch (error) {
      observer.fault?.("store", error);
    } finally {
      this.#sweeping = undefined;
    }
  }
}
