import type { RunContext } from "../run-context.js";

/** Work with the store that may fail: each time that the store cannot be reached is reported once. */
export class StoreTurns {
  readonly #context: Pick<RunContext, "clock" | "observer">;
  #last: Promise<unknown> = Promise.resolve();
  isFailing = false;
  /** Monotonic ms of the last failure. */
  failedAt = Number.NEGATIVE_INFINITY;

  constructor(context: Pick<RunContext, "clock" | "observer">) {
    this.#context = context;
  }

  /** Resolves to the result, or to undefined after a failure. */
  async try<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      const result = await work();
      this.isFailing = false;
      return result;
    } catch (error) {
      if (!this.isFailing) this.#context.observer.fault?.("store", error);
      this.isFailing = true;
      this.failedAt = this.#context.clock.monotonic();
      return undefined;
    }
  }

  /** Tries work once all work before it is done. */
  next<T>(work: () => Promise<T>): Promise<T | undefined> {
    const turn = this.#last.then(() => this.try(work));
    this.#last = turn;
    return turn;
  }

  /** Resolves when all work so far is done. */
  async done(): Promise<void> {
    await this.#last;
  }
}
