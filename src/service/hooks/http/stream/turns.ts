/** Resumes one waiter in each turn of the event loop, first come, first served. */
export class Turns {
  readonly #waiting: (() => void)[] = [];
  #isStepping = false;

  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (this.#isStepping) return;
      this.#isStepping = true;
      setImmediate(this.#step);
    });
  }

  readonly #step = (): void => {
    this.#waiting.shift()?.();
    this.#isStepping = this.#waiting.length > 0;
    if (this.#isStepping) setImmediate(this.#step);
  };
}
