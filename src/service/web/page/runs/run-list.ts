import type { Run, RunPage } from "../api/types.ts";

/** Runs that are known, newest first, and where the next older ones begin. */
export interface RunList {
  readonly runs: readonly Run[];
  /** null at the oldest run; undefined before the first page. */
  readonly cursor: string | null | undefined;
}

export const NO_RUNS: RunList = { runs: [], cursor: undefined };

/**
 * Puts the newest page in front. A page that shares no run with the list replaces it: runs between the two would be
 * missing.
 */
export function withNewest(list: RunList, page: RunPage): RunList {
  const known = new Set(list.runs.map(({ run_id }) => run_id));
  const isJoined = page.runs.some(({ run_id }) => known.has(run_id));
  if (!isJoined || page.next_cursor === null) return { runs: page.runs, cursor: page.next_cursor };
  const newest = new Set(page.runs.map(({ run_id }) => run_id));
  return { runs: [...page.runs, ...list.runs.filter(({ run_id }) => !newest.has(run_id))], cursor: list.cursor };
}

/** Appends the next older page. */
export function withOlder(list: RunList, page: RunPage): RunList {
  const known = new Set(list.runs.map(({ run_id }) => run_id));
  const older = page.runs.filter(({ run_id }) => !known.has(run_id));
  return { runs: [...list.runs, ...older], cursor: page.next_cursor };
}

/** Replaces runs by what is newly known of them. */
export function withChanged(list: RunList, changed: ReadonlyMap<string, Run>): RunList {
  return changed.size === 0 ? list : { ...list, runs: list.runs.map((run) => changed.get(run.run_id) ?? run) };
}
