import type { Clock, SteadyWall } from "../clock.js";
import type { SharedStore } from "../store/leases.js";

/** Reads the store's time, as of the middle of the request. */
export async function storeTime(store: Pick<SharedStore, "now">, clock: Clock): Promise<number> {
  const asked = clock.monotonic();
  const time = await store.now();
  return time + (clock.monotonic() - asked) / 2;
}

/** Joins the processes that share a store, and sets a time by the store's. */
export async function joinStore(store: SharedStore, clock: Clock, now: SteadyWall): Promise<void> {
  await store.join();
  now.set(await storeTime(store, clock));
}
