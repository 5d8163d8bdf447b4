import { GRACE_MS, orGivenUp } from "../../base/abort.js";
import { YieldTimer } from "../../base/yield-timer.js";
import type { RunEvent } from "../events.js";
import type { Run } from "./run.js";

/** Events that happen while a node runs, until the consumer takes them. */
export class EventQueue {
  private pending: RunEvent[] = [];
  private wake = () => {};

  add(event: RunEvent): void {
    this.pending.push(event);
    this.wake();
  }

  /** Takes all pending events. */
  take(): readonly RunEvent[] {
    const events = this.pending;
    this.pending = [];
    return events;
  }

  /**
   * Steps through the run and yields its events, several at a time, also while a node still runs. One that does not
   * listen to an abort is left alone after the grace.
   */
  async *follow(run: Run, signal: AbortSignal | undefined): AsyncGenerator<readonly RunEvent[], void, void> {
    const timer = new YieldTimer();
    while (run.status === undefined) {
      let isSettled = false;
      let failure: { error: unknown } | undefined;
      const settle = () => {
        isSettled = true;
        this.wake();
      };
      orGivenUp(run.step(), signal, GRACE_MS)
        .catch((error: unknown) => {
          if (!signal?.aborted || error !== signal.reason) throw error;
          run.giveUp();
        })
        .then(settle, (error: unknown) => {
          failure = { error };
          settle();
        });
      while (!isSettled || this.pending.length > 0) {
        if (this.pending.length === 0) await this.nextEvent();
        const events = this.take();
        if (events.length > 0) yield events;
      }
      if (failure !== undefined) throw failure.error;
      if (timer.isDue) await timer.yield();
    }
  }

  private nextEvent(): Promise<void> {
    return new Promise((resolve) => {
      this.wake = resolve;
    });
  }
}
