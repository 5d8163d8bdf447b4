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
import type { Store } from "../store/store.js";
import type { EventBus } from "./event-bus.js";
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

/** Reads runs straight from the store; `open` comes before every read, `positionOf` tells a run's position in the queue. */
export class RunReader {
  readonly #store: Store;
  readonly #bus: EventBus;
  readonly #open: () => Promise<void>;
  readonly #positionOf: (runId: string) => Promise<number>;

  constructor({ store, bus }: RunContext, open: () => Promise<void>, positionOf: (runId: string) => Promise<number>) {
    this.#store = store;
    this.#bus = bus;
    this.#open = open;
    this.#positionOf = positionOf;
  }

  async get(runId: string): Promise<RunRow> {
    await this.#open();
    return existing(await this.#store.getRun(runId));
  }

  async status(runId: string): Promise<RunStatus> {
    await this.#open();
    const status = existing(await this.#store.getStatus(runId, MOST_FILES));
    return { ...status, queuePosition: status.state === "queued" ? await this.#positionOf(runId) : null };
  }

  async outcome(runId: string): Promise<StoredEvent | null> {
    await this.#checkExists(runId);
    return this.#store.terminalEvent(runId);
  }

  async list({ cursor, limit, ...filter }: { cursor?: string; limit: number } & RunFilter): Promise<{
    runs: RunSummary[];
    nextCursor: string | null;
  }> {
    if (cursor !== undefined && !/^[1-9]\d{0,14}$/.test(cursor)) {
      throw new HookError("invalid_request", "cursor: expected the next_cursor of an earlier page");
    }
    await this.#open();
    const count = Math.min(Math.max(Math.trunc(limit), 1), 1000);
    // one run more than requested shows whether there is a next page
    const runs = await this.#store.listRuns(cursor === undefined ? null : Number(cursor), count + 1, filter);
    const hasMore = runs.length > count;
    const page = runs.slice(0, count);
    return { runs: page, nextCursor: hasMore ? String(page.at(-1)!.seq) : null };
  }

  async read(runId: string, after: number): Promise<EventSlice> {
    await this.#open();
    const most = SLICE_EVENTS - (Math.max(after, 0) % SLICE_EVENTS);
    return existing(await this.#store.readEvents(runId, after, most, SLICE_BYTES));
  }

  async readGroup(groupId: string, after: number): Promise<GroupPage> {
    await this.#open();
    const slice = await this.#store.readGroup(groupId, Math.max(after, 0), PAGE_ENDS);
    if (slice === null) throw new HookError("group_not_found");
    const ends: GroupPage["ends"][number][] = [];
    for (const end of slice.ends) {
      const status = await this.#store.getStatus(end.runId, END_FILES);
      // removed meanwhile, and from its group too
      if (status === null) return this.readGroup(groupId, after);
      // a response may be long
      const { terminal: _, ...run } = status;
      ends.push({ ...end, run });
    }
    return { ...slice, ends };
  }

  async *follow(runId: string, after: number, signal?: AbortSignal): AsyncGenerator<EventSlice, void, undefined> {
    signal?.throwIfAborted();
    // before the first read: whatever happens in between wakes the reader
    const listener = this.#bus.listen(runId);
    const stop = () => listener.close();
    signal?.addEventListener("abort", stop, { once: true });
    try {
      for (let cursor = Math.max(after, 0); ; ) {
        const slice = await this.read(runId, cursor);
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
  }

  async file(runId: string, name: string): Promise<RunFile> {
    await this.#checkExists(runId);
    const file = await this.#store.getFile(runId, name);
    if (file === null) throw new HookError("not_found", "this run reported no such file");
    return file;
  }

  async #checkExists(runId: string): Promise<void> {
    await this.#open();
    existing(await this.#store.getSummary(runId));
  }
}

function existing<T>(value: T | null): T {
  if (value === null) throw new HookError("run_not_found");
  return value;
}
