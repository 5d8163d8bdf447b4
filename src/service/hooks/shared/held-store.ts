import type { HeldRun, SharedStore } from "../store/leases.js";
import type { Ending } from "../store/store.js";

/**
 * A store as the task of a held run sees it: the run has started, and every write passes its token. An end for which
 * `isReleased` holds queues the run again instead.
 */
export function heldStore(
  store: SharedStore,
  { run, token }: HeldRun,
  isReleased: (ending: Ending) => boolean,
): SharedStore {
  return {
    ...store,
    startRun: async () => run,
    append: (id, batch, limits) => store.append(id, batch, limits, token),
    async endRun(id, ending, batch, limits) {
      if (!isReleased(ending)) return store.endRun(id, ending, batch, limits, token);
      await store.release(id, token);
      return null;
    },
  };
}
