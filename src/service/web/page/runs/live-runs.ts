import { useEffect, useRef, useState } from "preact/hooks";
import { type Client, type ListedRun, Refusal, type Run, type RunDetail, type RunPage, type RunState } from "../api.ts";
import { usePolling, useService } from "../parts/service.ts";

// Polled, since no stream tells of all runs and a browser opens six connections to an address.
const POLL_MS = 1200;
const NEWEST = 60;
const OLDER = 200;
/** Most runs whose progress is asked for at once. */
const MOST_DETAILS = 8;
/** Runs that a search lists before older ones are looked through: more than a window holds. */
const ENOUGH = 30;

/** The runs of the service as they are now. */
export interface LiveRuns {
  readonly list: RunList;
  /** Progress and place in the queue of runs that have not ended. */
  readonly details: ReadonlyMap<string, RunDetail>;
  readonly error?: Error;
  /** Loads older runs, unless it is doing so or there are none. */
  loadOlder(): void;
  /** Takes what another view has learnt of a run. */
  note(run: RunDetail): void;
}

/** Runs of a state, all if it is undefined, that hold the words; refreshed while they are shown. */
export function useLiveRuns(state: RunState | undefined, words: string): LiveRuns {
  const client = useService();
  const filter = new URLSearchParams({ ...(state && { state }), ...(words && { search: words }) });
  const query = filter.toString();
  const [list, setList] = useState<RunList>(NO_RUNS);
  const [details, setDetails] = useState<ReadonlyMap<string, RunDetail>>(new Map());
  const [error, setError] = useState<Error>();
  const current = useRef({ query, list });
  const isLoading = useRef(false);
  if (current.current.query !== query) {
    // the runs of another filter
    current.current = { query, list: NO_RUNS };
    setList(NO_RUNS);
  }
  const change = (own: string, next: RunList) => {
    if (own !== current.current.query) return;
    current.current = { query: own, list: next };
    setList(next);
  };

  const poll = async (signal: AbortSignal) => {
    try {
      const page = await client.get<RunPage>(`api/page/runs?limit=${NEWEST}&${query}`, signal);
      change(query, withNewest(current.current.list, page));
      const found = await detailsOf(client, current.current.list, signal);
      setDetails(found);
      // a run that left the first page ends there too
      change(query, withChanged(current.current.list, found));
      setError(undefined);
    } catch (problem) {
      // the head of the page says that the service is not there
      if (!signal.aborted)
        setError(problem instanceof Refusal && problem.status === 0 ? undefined : (problem as Error));
    }
  };
  usePolling(poll, POLL_MS, [client, query]);

  const loadOlder = async () => {
    const { list } = current.current;
    if (isLoading.current || typeof list.cursor !== "string") return;
    isLoading.current = true;
    try {
      const path = `api/page/runs?limit=${OLDER}&cursor=${encodeURIComponent(list.cursor)}&${query}`;
      const page = await client.get<RunPage>(path);
      change(query, withOlder(current.current.list, page));
    } catch {
      // it is tried again as the list is scrolled
    } finally {
      isLoading.current = false;
    }
  };
  useEffect(() => {
    if (list.runs.length < ENOUGH) void loadOlder();
  }, [list]);
  const note = (run: RunDetail) => {
    const own = new Map([[run.run_id, run]]);
    change(query, withChanged(current.current.list, own));
    setDetails((details) => new Map([...details, ...own]));
  };
  return { list, details, error, loadOlder: () => void loadOlder(), note };
}

async function detailsOf(client: Client, { runs }: RunList, signal: AbortSignal): Promise<Map<string, RunDetail>> {
  const isActive = ({ done }: Run) => !done;
  // the oldest are nearest to their end
  const active = runs.filter(isActive).slice(-MOST_DETAILS);
  const found = await Promise.all(
    active.map(({ run_id }) => client.get<RunDetail>(`api/runs/${run_id}`, signal).catch(() => undefined)),
  );
  return new Map(found.flatMap((run) => (run === undefined ? [] : [[run.run_id, run] as const])));
}

/** Runs that are known, newest first, and where the next older ones begin. */
interface RunList {
  readonly runs: readonly ListedRun[];
  /** null at the oldest run; undefined before the first page. */
  readonly cursor: string | null | undefined;
  /** Number of the newest run that was looked at. */
  readonly from: number;
}

const NO_RUNS: RunList = { runs: [], cursor: undefined, from: 0 };

/**
 * Puts the newest page in front. A page that ends above the list replaces it: runs between the two would be missing; so
 * does one with all runs.
 */
function withNewest(list: RunList, page: RunPage): RunList {
  const known = new Map(list.runs.map((run) => [run.run_id, run]));
  const newest = page.runs.map((run) => ({ ...run, ...laterOf(known.get(run.run_id), run) }));
  const isJoined = list.cursor !== undefined && page.to <= list.from;
  if (!isJoined || page.next_cursor === null) return { runs: newest, cursor: page.next_cursor, from: page.from };
  const ids = new Set(newest.map(({ run_id }) => run_id));
  const older = list.runs.filter(({ run_id }) => !ids.has(run_id));
  return { runs: [...newest, ...older], cursor: list.cursor, from: page.from };
}

/** Appends the next older page. */
function withOlder(list: RunList, page: RunPage): RunList {
  const known = new Set(list.runs.map(({ run_id }) => run_id));
  const older = page.runs.filter(({ run_id }) => !known.has(run_id));
  return { ...list, runs: [...list.runs, ...older], cursor: page.next_cursor };
}

/** Changes runs by what is newly known of them. */
function withChanged(list: RunList, changed: ReadonlyMap<string, Run>): RunList {
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
