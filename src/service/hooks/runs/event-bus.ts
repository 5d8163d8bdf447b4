/** One reader of one run. */
export interface Listener {
  /** Resolves when the run has changed since the last call (at once where it has already), and after `close`. */
  changed(): Promise<void>;
  close(): void;
  readonly isClosed: boolean;
}

interface Waiter extends Listener {
  /** The reader has read everything. */
  readonly isWaiting: boolean;
  wake(): void;
}

/** Wakes the readers of a run, who then read its events from the store. */
export class EventBus {
  readonly #listeners = new Map<string, Set<Waiter>>();
  #isClosed = false;

  /** Number of runs with readers. */
  get runs(): number {
    return this.#listeners.size;
  }

  /** Ids of the runs with readers. */
  get runIds(): string[] {
    return [...this.#listeners.keys()];
  }

  /** Every reader has read everything. */
  get isQuiet(): boolean {
    for (const listeners of this.#listeners.values()) {
      for (const { isWaiting } of listeners) if (!isWaiting) return false;
    }
    return true;
  }

  listen(runId: string): Listener {
    let isDirty = false;
    let isClosed = this.#isClosed;
    let resume: (() => void) | undefined;
    const listener: Waiter = {
      get isClosed() {
        return isClosed;
      },
      get isWaiting() {
        return resume !== undefined;
      },
      wake() {
        isDirty = true;
        resume?.();
        resume = undefined;
      },
      changed: async () => {
        if (!isDirty && !isClosed) {
          await new Promise<void>((resolve) => {
            resume = resolve;
          });
        }
        isDirty = false;
      },
      close: () => {
        if (isClosed) return;
        isClosed = true;
        const others = this.#listeners.get(runId);
        others?.delete(listener);
        if (others?.size === 0) this.#listeners.delete(runId);
        listener.wake();
      },
    };
    if (isClosed) return listener;
    const others = this.#listeners.get(runId);
    if (others === undefined) this.#listeners.set(runId, new Set([listener]));
    else others.add(listener);
    return listener;
  }

  wake(runId: string): void {
    for (const listener of this.#listeners.get(runId) ?? []) listener.wake();
  }

  /** Ends every wait, current and future. */
  close(): void {
    this.#isClosed = true;
    for (const listeners of [...this.#listeners.values()]) for (const listener of [...listeners]) listener.close();
  }
}
