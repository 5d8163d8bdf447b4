import type { RunEvent } from "../events.js";
import type { Run } from "./run.js";

/** Longer without a turn of the event loop, and timers, sockets and signals would starve. */
const MAX_BUSY_MS = 10;

/** What happens while a node runs, until somebody asks. */
export class EventQueue {
  private happened: RunEvent[] = [];
  private wake = () => {};

  add(event: RunEvent): void {
    this.happened.push(event);
    this.wake();
  }

  /** Steps through the run; what a node reports comes while it still runs, several events together. */
  async *follow(run: Run): AsyncGenerator<readonly RunEvent[], void, void> {
    let turn = performance.now();
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
        const events = this.happened;
        this.happened = [];
        if (events.length > 0) yield events;
      }
      if (failure !== undefined) throw failure.error;
      if (performance.now() - turn > MAX_BUSY_MS) {
        await new Promise((resolve) => setImmediate(resolve));
        turn = performance.now();
      }
    }
  }

  private somethingHappens(): Promise<void> {
    return new Promise((resolve) => {
      this.wake = resolve;
    });
  }
}
