import type { EventSlice, RunFile, RunProgress, RunRow, StoredEvent } from "../run.js";
import { cursorOf, sliceOf } from "./event-slice.js";
import type { EventBatch, EventLimits, NewRun } from "./store.js";

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

/** Row of a run that has just been created. `chatId`: id of its session. */
export function newRow(run: NewRun, seq: number, chatId: number, message: string): RunRow {
  const { id, sessionKey, start, terms, graph = null, createdAt } = run;
  // no spread: every start pays for it
  return {
    id,
    seq,
    sessionKey,
    chatId,
    origin: start.origin,
    name: start.name ?? null,
    graph,
    traceparent: start.traceparent ?? null,
    promptFacts: start.promptFacts ?? null,
    message,
    timeoutSeconds: terms.timeoutSeconds,
    priority: terms.priority,
    dueMark: terms.dueMark,
    deadlineMark: terms.deadlineMark,
    tags: terms.tags,
    state: "queued",
    attempt: 1,
    createdAt,
    startedAt: null,
    finishedAt: null,
    oldestEventId: 1,
    lastEventId: 0,
    error: null,
  };
}

/** Adds events and files to a run, and trims its head to the limits. */
export function addEvents(run: MemoryRun, batch: EventBatch, limits?: EventLimits): void {
  const { row } = run;
  if (batch.skip > 0) {
    [run.events, run.bytes] = [[], 0];
    row.lastEventId += batch.skip;
    row.oldestEventId = row.lastEventId + 1;
  }
  run.progress = batch.progress ?? run.progress;
  for (const file of batch.files) run.files.set(file.name, file);
  for (const { event, data } of batch.events) {
    row.lastEventId += 1;
    const bytes = Buffer.byteLength(data);
    run.bytes += bytes;
    run.events.push({ id: row.lastEventId, event, data, bytes });
  }
  if (limits === undefined) return;
  let trimmed = 0;
  const left = () => run.events.length - trimmed;
  while (left() > 1 && (left() > limits.events || run.bytes > limits.bytes)) {
    run.bytes -= run.events[trimmed]!.bytes;
    trimmed += 1;
  }
  if (trimmed === 0) return;
  run.events.splice(0, trimmed);
  row.oldestEventId = run.events[0]!.id;
}

export function readEvents(run: MemoryRun, after: number, maxEvents: number, maxBytes: number): EventSlice {
  const { oldestEventId, lastEventId } = run.row;
  const ids = { oldestEventId, lastEventId, hasEnded: run.endedMark !== null };
  const cursor = cursorOf(after, ids);
  const events: StoredEvent[] = [];
  let total = 0;
  for (let at = Math.max(0, cursor + 1 - oldestEventId); at < run.events.length && events.length < maxEvents; at++) {
    const event = run.events[at]!;
    total += event.bytes;
    if (events.length > 0 && total > maxBytes) break;
    events.push(toStored(event));
  }
  return sliceOf(events, cursor, ids);
}

export const terminalEvent = (run: MemoryRun): StoredEvent | null =>
  run.endedMark === null ? null : toStored(run.events.at(-1)!);

const toStored = ({ id, event, data }: SizedEvent): StoredEvent => ({ id, event, data });
