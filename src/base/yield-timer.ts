/** Milliseconds after which timers, sockets and signals would starve. */
const MAX_BUSY_MS = 10;

/** Tells long work when to let the event loop turn, and does so. */
export class YieldTimer {
  private last = performance.now();

  get isDue(): boolean {
    return performance.now() - this.last > MAX_BUSY_MS;
  }

  async yield(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.last = performance.now();
  }
}
