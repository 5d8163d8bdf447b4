/** Does the work of one key in the order of the calls; that of different keys at the same time. */
export class InOrder {
  readonly #last = new Map<string, Promise<unknown>>();

  run<T>(key: string, work: () => Promise<T>): Promise<T> {
    return this.runAll([key], work);
  }

  /** Does work that belongs to several keys, all different. */
  async runAll<T>(keys: readonly string[], work: () => Promise<T>): Promise<T> {
    const before = keys.flatMap((key) => this.#last.get(key) ?? []);
    const own = before.length === 0 ? work() : Promise.allSettled(before).then(work);
    for (const key of keys) this.#last.set(key, own);
    try {
      return await own;
    } finally {
      for (const key of keys) if (this.#last.get(key) === own) this.#last.delete(key);
    }
  }
}
