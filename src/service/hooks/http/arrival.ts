import type { Clock, Timer } from "../clock.js";
import type { Limits } from "../hook-config.js";

/** Limits of a body's time. */
export interface ArrivalLimits {
  /** Longest wait for bytes, and the time before the rate counts. */
  readonly silenceMs: number;
  /** Least bytes a second, on average. */
  readonly bytesPerSecond: number;
  readonly clock: Clock;
}

// decision 329
/** The limits of every body, small or large: how long it may take follows from its size alone. */
export const arrivalLimits = (
  { header_seconds, body_bytes_per_second: bytesPerSecond }: Limits,
  clock: Clock,
): ArrivalLimits => ({ silenceMs: header_seconds * 1000, bytesPerSecond, clock });

/** The time of one body. Waits for its client count, what is done with its bytes does not. */
export class Arrival {
  readonly #limits: ArrivalLimits;
  #leftMs: number;
  #since = 0;
  #timer: Timer | undefined;
  /** Changes with the beginning and the end of each wait. */
  #turn = 0;

  constructor(limits: ArrivalLimits) {
    this.#limits = limits;
    this.#leftMs = limits.silenceMs;
  }

  /** Begins a wait for bytes; calls `onLate` where it takes too long. */
  wait(onLate: () => void): void {
    const { clock, silenceMs } = this.#limits;
    this.#since = clock.monotonic();
    this.#turn += 1;
    const turn = this.#turn;
    const check = () => {
      if (this.#turn === turn) onLate();
    };
    // bytes that came while the event loop was held up are read before the check
    this.#timer = clock.setTimer(Math.min(silenceMs, this.#leftMs), () => setImmediate(check));
  }

  /** Ends the wait. Its bytes allow as much time as they may take. */
  end(bytes: number): void {
    const { clock, bytesPerSecond } = this.#limits;
    this.#timer?.cancel();
    this.#turn += 1;
    this.#leftMs += (bytes / bytesPerSecond) * 1000 - (clock.monotonic() - this.#since);
  }
}
