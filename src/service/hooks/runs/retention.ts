import type { Timer } from "../clock.js";
import type { Limits } from "../hook-config.js";
import type { RunContext } from "./run-context.js";

const INTERVAL_MS = 60_000;
/** Rows of one transaction: some 20 ms. */
const BUDGET = 2000;

/** Removes runs and keys that have outlived their retention: every minute, and when too many runs have ended. */
export class Retention {
  readonly #context: RunContext;
  readonly #retentionMs: number;
  readonly #maxEndedRuns: number;
  #ended = 0;
  #timer: Timer | undefined;
  #sweeping: Promise<void> | undefined;
  #isStopped = false;

  constructor(context: RunContext, limits: Pick<Limits, "retention_hours" | "retention_runs">) {
    this.#context = context;
    this.#retentionMs = limits.retention_hours * 3600_000;
    this.#maxEndedRuns = limits.retention_runs;
  }

  /** Counts one more ended run. */
  countEnded(): void {
    this.#ended += 1;
    // one percent of slack: not every ending pays for a sweep
    if (this.#ended > this.#maxEndedRuns + Math.floor(this.#maxEndedRuns / 100)) void this.#sweep();
  }

  /** Sweeps now and every minute. */
  start(): void {
    if (this.#isStopped) return;
    this.#timer?.cancel();
    this.#timer = this.#context.clock.setTimer(INTERVAL_MS, () => this.start());
    void this.#sweep();
  }

  #sweep(): Promise<void> {
    this.#sweeping ??= this.#sweepAll();
    return this.#sweeping;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#sweeping;
  }

  async #sweepAll(): Promise<void> {
    const { store, mark, observer } = this.#context;
    try {
      for (let more = true; more && !this.#isStopped; ) {
        await new Promise((resolve) => setImmediate(resolve));
        const nowMark = mark();
        const endedBefore = nowMark - this.#retentionMs;
        const result = await store.sweep({ endedBefore, maxEndedRuns: this.#maxEndedRuns, nowMark, budget: BUDGET });
        this.#ended = result.endedRuns;
        more = result.more;
      }
    } catch (error) {
      observer.fault?.("store", error);
    } finally {
      this.#sweeping = undefined;
    }
  }
}
