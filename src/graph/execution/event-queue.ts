import type { RunEvent } from "../events.js";
import type { Run } from "./run.js";
import { YieldTimer } from "./yield-timer.js";

/** What happens while a node runs, until somebody asks. */
export class EventQueue {
  private happened: RunEvent[] = [];
  private wake = () => {};

  add(event: RunEvent): void {
    this.happened.push(event);
    this.wake();
  }

  /** What has happened and nobody has heard of. */
  take(): readonly RunEvent[] {
    const events = this.happened;
    this.happened = [];
    return events;
  }

  /** Steps through the run; what a node reports comes while it still runs, several events together. */
  async *follow(run: Run): AsyncGenerator<readonly RunEvent[], void, void> {
    const breath = new YieldTimer();
    while (run.status === undefined) {
      let isSettled = false;
      let failure: { error: unknown } | undefined;
      const settle = () => {
        isSettled = true;
        this.wake();
      };
      run.step().then(settle, (error: unknown) => {
        failure = { error };
        settle();
      });
      while (!isSettled || this.happened.length > 0) {
        if (this.happened.length === 0) await this.somethingHappens();
        const events = this.take();
        if (events.length > 0) yield events;
      }
      if (failure !== undefined) throw failure.error;
      if (breath.isDue) await breath.take();
    }
  }

  private somethingHappens(): Promise<void> {
    return new Promise((resolve) => {
      this.wake = resolve;
    });
  }
}
