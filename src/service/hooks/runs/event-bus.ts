/** One reader of one run or group. */
export interface Listener {
  /** Resolves when the run has changed, or one of the group ended, since the last call (at once where it has already), and after `close`. */
  changed(): Promise<void>;
  close(): void;
  readonly isClosed: boolean;
}

interface Waiter extends Listener {
  /** The reader has read everything. */
  readonly isWaiting: boolean;
  wake(): void;
}

/** Wakes the readers of runs and groups, who then read from the store. */
export class EventBus {
  readonly #listeners = new Map<string, Set<Waiter>>();
  readonly #groups = new Set<string>();
  #isClosed = false;

  /** Number of runs and groups with readers. */
  get followed(): number {
    return this.#listeners.size;
  }

  /** Ids of the runs and groups with readers. */
  get ids(): string[] {
    return [...this.#listeners.keys()];
  }

  /** Ids of the groups with readers. */
  get groups(): ReadonlySet<string> {
    return this.#groups;
  }

  /** Every reader has read everything. */
  get isQuiet(): boolean {
    for (const listeners of this.#listeners.values()) {
      for (const { isWaiting } of listeners) if (!isWaiting) return false;
    }
    return true;
  }

  listen(id: string, isGroup = false): Listener {
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
        const others = this.#listeners.get(id);
        others?.delete(listener);
        if (others?.size === 0) {
          this.#listeners.delete(id);
          this.#groups.delete(id);
        }
        listener.wake();
      },
    };
    if (isClosed) return listener;
    if (isGroup) this.#groups.add(id);
    const others = this.#listeners.get(id);
    if (others === undefined) this.#listeners.set(id, new Set([listener]));
    else others.add(listener);
    return listener;
  }

  wake(id: string): void {
    for (const listener of this.#listeners.get(id) ?? []) listener.wake();
  }

  /** Ends every wait, current and future. */
  close(): void {
    this.#isClosed = true;
    for (const listeners of [...this.#listeners.values()]) for (const listener of [...listeners]) listener.close();
  }
}
