import type { Store } from "./store.js";

/** A store that the processes of several machines share: workers hold each run by a lease, which they renew. */
export interface SharedStore extends Store {
  /** Extends the leases of a worker; returns the runs that it holds. It must give up all others. */
  renew(worker: string, leaseMs: number): Promise<{ readonly id: string; readonly token: number }[]>;
  /**
   * Calls back when a run was created, changed or ended, in whatever process, with its id, and with that of its group at
   * its end; with null where any may have.
   * A hint, which may be lost with a connection: look by yourself as well, every second or so. Returns the end of it.
   */
  listen(listener: (id: string | null) => void): () => void;
  /** Removes these runs as far as they have ended. */
  removeRuns(ids: readonly string[]): Promise<void>;
  /** Wall clock ms of the store, which is the same for all processes. */
  now(): Promise<number>;
  /** Texts that differ from earlier ones where a run or a group has changed, by id; none for one that is not stored. */
  revisions(ids: readonly string[]): Promise<ReadonlyMap<string, string>>;
}

export const isShared = (store: Store): store is SharedStore => "renew" in store && "listen" in store;
