/** Longer without a turn of the event loop, and timers, sockets and signals would starve. */
const MAX_BUSY_MS = 10;

/** Turns of the event loop for work that goes on for long without one. */
export class YieldTimer {
  private last = performance.now();

  get isDue(): boolean {
    return performance.now() - this.last > MAX_BUSY_MS;
  }

  async take(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.last = performance.now();
  }
}
