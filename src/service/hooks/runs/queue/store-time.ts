import type { Clock } from "../../clock.js";
import type { SharedStore } from "../../store/shared-store.js";

/** Reads the store's time, as of the middle of the request: processes that share a store share its time. */
export async function storeTime(store: Pick<SharedStore, "now">, clock: Clock): Promise<number> {
  const asked = clock.monotonic();
  const time = await store.now();
  return time + (clock.monotonic() - asked) / 2;
}
