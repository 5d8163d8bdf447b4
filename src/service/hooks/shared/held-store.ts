import type { HeldRun, SharedStore } from "../store/leases.js";
import type { Ending } from "../store/store.js";

/**
 * A store as the task of a held run sees it: the run has started, and every write passes its token. A batch whose answer
 * was lost may be handed over again, at the front of a longer one: it is added once. An end for which `isReleased` holds
 * queues the run again instead.
 */
export function heldStore(
  store: SharedStore,
  { run, token }: HeldRun,
  isReleased: (ending: Ending) => boolean,
): SharedStore {
  let after = run.lastEventId;
  return {
    ...store,
    startRun: async () => run,
    async append(id, batch, limits) {
      const isAdded = await store.append(id, { ...batch, after }, limits, token);
      after += batch.skip + batch.events.length;
      return isAdded;
    },
    retryRun: (id, retry, batch, limits) => store.retryRun(id, retry, { ...batch, after }, limits, token),
    async endRun(id, ending, batch, limits) {
      if (!isReleased(ending)) return store.endRun(id, ending, { ...batch, after }, limits, token);
      await store.release(id, token);
      return false;
    },
  };
}
