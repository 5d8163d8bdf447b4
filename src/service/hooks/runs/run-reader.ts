import { HookError } from "../hook-error.js";
import type {
  EventSlice,
  GroupEnd,
  GroupSlice,
  RunFile,
  RunFilter,
  RunRow,
  RunStatus,
  RunSummary,
  StoredEvent,
  StoredStatus,
} from "../run.js";
import type { RunContext } from "./run-context.js";

/** Slices end at multiples of this, so that readers that began at different ids soon share the same ones. */
const SLICE_EVENTS = 256;
/** With their frames, one slice for each of 1,000 readers is less than `streams_bytes`. */
const SLICE_BYTES = 48 * 1024;
/** Most files that a status lists. */
const MOST_FILES = 1000;
/** Most ends of a group's page, and most files of each. */
const PAGE_ENDS = 16;
const END_FILES = 20;

/** Ends of a group's runs, with the runs. */
export interface GroupPage extends Omit<GroupSlice, "ends"> {
  readonly ends: readonly (GroupEnd & { readonly run: Omit<StoredStatus, "terminal"> })[];
}

/** Reads of runs, straight from the store. */
export interface RunReads {
  /** Fails with run_not_found. */
  get(runId: string): Promise<RunRow>;
  /** Returns the run without its message, which may be long. Fails with run_not_found. */
  status(runId: string): Promise<RunStatus>;
  /** Returns the terminal event of an ended run, else null. Fails with run_not_found. */
  outcome(runId: string): Promise<StoredEvent | null>;
  /** Newest first. `limit` 1 to 1,000. Fails with invalid_request for a cursor that no list returned. */
  list(
    options: { cursor?: string; limit: number } & RunFilter,
  ): Promise<{ runs: RunSummary[]; nextCursor: string | null }>;
  /** Returns one bounded slice after an id, without waiting. Fails with run_not_found. */
  read(runId: string, after: number): Promise<EventSlice>;
  /** Returns the first ends of a group's runs after a position, without waiting. Fails with group_not_found. */
  readGroup(groupId: string, after: number): Promise<GroupPage>;
  /**
   * Bounded slices after an id, live: waits for events, ends after the terminal event and on close. Each step reads
   * from the store, so a reader that does not pull costs nothing. Fails with run_not_found and with the reason of `signal`.
   */
  follow(runId: string, after: number, signal?: AbortSignal): AsyncGenerator<EventSlice, void, undefined>;
  /** Returns a file that the run reported. Fails with run_not_found or not_found. */
  file(runId: string, name: string): Promise<RunFile>;
}

/** `open` comes before every read; `positionOf` returns a run's position in the queue. */
export function createRunReads(
  { store, bus }: RunContext,
  open: () => Promise<void>,
  positionOf: (runId: string) => Promise<number>,
): RunReads {
  const checkExists = async (runId: string) => {
    await open();
    existing(await store.getSummary(runId));
  };
  const reads: RunReads = {
    async get(runId) {
      await open();
      return existing(await store.getRun(runId));
    },
    async status(runId) {
      await open();
      const status = existing(await store.getStatus(runId, MOST_FILES));
      return { ...status, queuePosition: status.state === "queued" ? await positionOf(runId) : null };
    },
    async outcome(runId) {
      await checkExists(runId);
      return store.terminalEvent(runId);
    },
    async list({ cursor, limit, ...filter }) {
      if (cursor !== undefined && !/^[1-9]\d{0,14}$/.test(cursor)) {
        throw new HookError("invalid_request", "cursor: expected the next_cursor of an earlier page");
      }
      await open();
      const count = Math.min(Math.max(Math.trunc(limit), 1), 1000);
      // one run more than requested shows whether there is a next page
      const runs = await store.listRuns(cursor === undefined ? null : Number(cursor), count + 1, filter);
      const page = runs.slice(0, count);
      return { runs: page, nextCursor: runs.length > count ? String(page.at(-1)!.seq) : null };
    },
    async read(runId, after) {
      await open();
      const most = SLICE_EVENTS - (Math.max(after, 0) % SLICE_EVENTS);
      return existing(await store.readEvents(runId, after, most, SLICE_BYTES));
    },
    async readGroup(groupId, after) {
      await open();
      const slice = await store.readGroup(groupId, Math.max(after, 0), PAGE_ENDS);
      if (slice === null) throw new HookError("group_not_found");
      const ends: GroupPage["ends"][number][] = [];
      for (const end of slice.ends) {
        const status = await store.getStatus(end.runId, END_FILES);
        // removed meanwhile, and from its group too
        if (status === null) return reads.readGroup(groupId, after);
        // a response may be long
        const { terminal: _, ...run } = status;
        ends.push({ ...end, run });
      }
      return { ...slice, ends };
    },
    async *follow(runId, after, signal) {
      signal?.throwIfAborted();
      // before the first read: whatever happens in between wakes the reader
      const listener = bus.listen(runId);
      const stop = () => listener.close();
      signal?.addEventListener("abort", stop, { once: true });
      try {
        for (let cursor = Math.max(after, 0); ; ) {
          const slice = await reads.read(runId, cursor);
          cursor = slice.events.at(-1)?.id ?? Math.min(cursor, slice.lastEventId);
          if (slice.events.length > 0 || slice.end) yield slice;
          if (slice.end) return;
          if (!listener.isClosed && cursor >= slice.lastEventId) await listener.changed();
          signal?.throwIfAborted();
          if (listener.isClosed) return;
        }
      } finally {
        signal?.removeEventListener("abort", stop);
        listener.close();
      }
    },
    async file(runId, name) {
      await checkExists(runId);
      const file = await store.getFile(runId, name);
      if (file === null) throw new HookError("not_found", "this run reported no such file");
      return file;
    },
  };
  return reads;
}

function existing<T>(value: T | null): T {
  if (value === null) throw new HookError("run_not_found");
  return value;
}
