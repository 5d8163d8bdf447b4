import type { EventSlice, RunFile, RunProgress, RunRow, StoredEvent } from "../types.js";
import type { EventBatch, Keep, NewEvent } from "./store.js";

interface SizedEvent extends StoredEvent {
  readonly bytes: number;
}

export type Mutable<T> = { -readonly [K in keyof T]: T[K] };

export interface MemoryRun {
  readonly row: Mutable<RunRow>;
  endedMark: number | null;
  events: SizedEvent[];
  bytes: number;
  /** In the order they were reported. */
  readonly files: Map<string, RunFile>;
  progress: RunProgress | null;
}

/** Adds events and files to a run, and trims its head to `keep`. */
export function addEvents(run: MemoryRun, batch: EventBatch, keep?: Keep): void {
  const { row } = run;
  if (batch.skip > 0) {
    [run.events, run.bytes] = [[], 0];
    row.lastEventId += batch.skip;
    row.oldestEventId = row.lastEventId + 1;
  }
  run.progress = batch.progress ?? run.progress;
  for (const file of batch.files) run.files.set(file.name, file);
  for (const { event, data } of batch.events as readonly NewEvent[]) {
    row.lastEventId += 1;
    const bytes = Buffer.byteLength(data);
    run.bytes += bytes;
    run.events.push({ id: row.lastEventId, event, data, bytes });
  }
  if (keep === undefined) return;
  let gone = 0;
  while (run.events.length - gone > 1 && (run.events.length - gone > keep.events || run.bytes > keep.bytes)) {
    run.bytes -= run.events[gone]!.bytes;
    gone += 1;
  }
  if (gone === 0) return;
  run.events.splice(0, gone);
  row.oldestEventId = run.events[0]!.id;
}

export function readEvents(run: MemoryRun, after: number, maxEvents: number, maxBytes: number): EventSlice {
  const { oldestEventId, lastEventId } = run.row;
  const cursor = Math.min(Math.max(after, 0), lastEventId);
  const events: StoredEvent[] = [];
  let total = 0;
  for (let at = Math.max(0, cursor + 1 - oldestEventId); at < run.events.length && events.length < maxEvents; at++) {
    const event = run.events[at]!;
    total += event.bytes;
    if (events.length > 0 && total > maxBytes) break;
    events.push(toStored(event));
  }
  const reached = events.at(-1)?.id ?? cursor;
  return {
    events,
    oldestEventId,
    lastEventId,
    truncated: cursor + 1 < oldestEventId,
    end: run.endedMark !== null && reached === lastEventId,
  };
}

export const terminalEvent = (run: MemoryRun): StoredEvent | null =>
  run.endedMark === null ? null : toStored(run.events.at(-1)!);

const toStored = ({ id, event, data }: SizedEvent): StoredEvent => ({ id, event, data });
