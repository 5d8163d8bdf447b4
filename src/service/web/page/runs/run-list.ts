import type { ListedRun, Run, RunPage } from "../api/types.ts";

/** Runs that are known, newest first, and where the next older ones begin. */
export interface RunList {
  readonly runs: readonly ListedRun[];
  /** null at the oldest run; undefined before the first page. */
  readonly cursor: string | null | undefined;
  /** Number of the newest run that was looked at. */
  readonly from: number;
}

export const NO_RUNS: RunList = { runs: [], cursor: undefined, from: 0 };

/**
 * Puts the newest page in front. A page that ends above the list replaces it: runs between the two would be missing; so
 * does one with all runs.
 */
export function withNewest(list: RunList, page: RunPage): RunList {
  const known = new Map(list.runs.map((run) => [run.run_id, run]));
  const newest = page.runs.map((run) => ({ ...run, ...laterOf(known.get(run.run_id), run) }));
  const isJoined = list.cursor !== undefined && page.to <= list.from;
  if (!isJoined || page.next_cursor === null) return { runs: newest, cursor: page.next_cursor, from: page.from };
  const ids = new Set(newest.map(({ run_id }) => run_id));
  const older = list.runs.filter(({ run_id }) => !ids.has(run_id));
  return { runs: [...newest, ...older], cursor: list.cursor, from: page.from };
}

/** Appends the next older page. */
export function withOlder(list: RunList, page: RunPage): RunList {
  const known = new Set(list.runs.map(({ run_id }) => run_id));
  const older = page.runs.filter(({ run_id }) => !known.has(run_id));
  return { ...list, runs: [...list.runs, ...older], cursor: page.next_cursor };
}

/** Changes runs by what is newly known of them. */
export function withChanged(list: RunList, changed: ReadonlyMap<string, Run>): RunList {
  if (changed.size === 0) return list;
  const change = (run: ListedRun) => {
    const next = changed.get(run.run_id);
    return next === undefined ? run : { ...run, ...laterOf(run, next) };
  };
  return { ...list, runs: list.runs.map(change) };
}

/** The later one of two looks at a run: responses come in another order than they were asked for. */
export function laterOf<Known extends Run, Next extends Run>(known: Known | undefined, next: Next): Known | Next {
  const isOlder = known !== undefined && (known.last_event_id > next.last_event_id || (known.done && !next.done));
  return isOlder ? known : next;
}
