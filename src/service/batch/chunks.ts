import type { Attempt, RunnerItem } from "../../render/batch/runner.js";

/** Time of a run: its start and end cost some milliseconds of the store, of the worker and of the batch. */
const RUN_MS = 500;
const MOST_ITEMS = 128;

/** An item that waits for its attempt. */
export interface Pending {
  readonly item: RunnerItem;
  readonly isAlone: boolean;
  readonly resolve: (attempt: Attempt) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Takes the items of one run, at most `share`: as many as some half a second needs, and one where nothing is known yet.
 * `itemMs`: time of an item.
 */
export function takeChunk(
  pending: readonly Pending[],
  itemMs: number | undefined,
  share: number,
): { readonly chunk: readonly Pending[]; readonly rest: Pending[] } {
  const fitting = itemMs === undefined ? 1 : Math.round(RUN_MS / Math.max(itemMs, 1));
  const most = pending[0]?.isAlone ? 1 : Math.max(1, Math.min(fitting, share, MOST_ITEMS));
  const alone = pending.findIndex(({ isAlone }, at) => isAlone && at > 0);
  const count = alone === -1 ? most : Math.min(most, alone);
  return { chunk: pending.slice(0, count), rest: pending.slice(count) };
}
