import type { Clock, Timer } from "../clock.js";

/** Calls `beat` every `seconds`, counted from the end of the last call. */
export class HeartbeatInterval {
  readonly #clock: Clock;
  readonly #seconds: number;
  readonly #beat: () => Promise<void>;
  #timer: Timer | undefined;
  #isStopped = false;

  constructor(clock: Clock, seconds: number, beat: () => Promise<void>) {
    this.#clock = clock;
    this.#seconds = seconds;
    this.#beat = beat;
  }

  start(): void {
    if (this.#isStopped || this.#seconds <= 0) return;
    this.#timer?.cancel();
    this.#timer = this.#clock.setTimer(this.#seconds * 1000, () => void this.#run());
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  async #run(): Promise<void> {
    await this.#beat();
    this.start();
  }
}
