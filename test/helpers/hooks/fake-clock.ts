import type { Clock } from "#src/service/hooks/clock.js";

interface Pending {
  readonly at: number;
  readonly order: number;
  readonly callback: () => void;
}

/** Time stands still until the test moves it. */
export class FakeClock implements Clock {
  readonly #pending = new Set<Pending>();
  #wall: number;
  #monotonic = 1000;
  #order = 0;

  constructor(wall = Date.UTC(2025, 0, 1)) {
    this.#wall = wall;
  }

  now(): number {
    return this.#wall;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  setTimer(ms: number, callback: () => void): { cancel(): void } {
    this.#order += 1;
    const pending = { at: this.#monotonic + Math.max(0, ms), order: this.#order, callback };
    this.#pending.add(pending);
    return { cancel: () => void this.#pending.delete(pending) };
  }

  get timers(): number {
    return this.#pending.size;
  }

  /** Moves both clocks on, timer by timer; work that a timer starts gets some turns of the event loop. */
  async advance(ms: number): Promise<void> {
    const end = this.#monotonic + ms;
    await turns();
    for (;;) {
      const [next] = [...this.#pending].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at || a.order - b.order);
      if (next === undefined) break;
      this.#pending.delete(next);
      this.#move(next.at - this.#monotonic);
      next.callback();
      await turns();
    }
    this.#move(end - this.#monotonic);
    await turns();
  }

  /** The wall clock alone jumps, as after a correction by NTP. */
  jumpWall(ms: number): void {
    this.#wall += ms;
  }

  #move(ms: number): void {
    this.#monotonic += ms;
    this.#wall += ms;
  }
}

/** Lets queued work of the event loop happen. */
export async function turns(count = 8): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
}
