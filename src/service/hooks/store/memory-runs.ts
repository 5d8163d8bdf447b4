import type { EventSlice, GroupSlice, RunFile, RunProgress, RunRow, StoredEvent } from "../run.js";
import type { EventBatch, EventLimits } from "./queue-store.js";
import { cursorOf, type NewRun, sliceOf } from "./store.js";

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

interface Member {
  readonly index: number;
  readonly run: MemoryRun;
  /** Null before the end. */
  position: number | null;
}

interface Group {
  readonly id: string;
  readonly size: number;
  ended: number;
  /** By the ids of their runs. */
  readonly members: Map<string, Member>;
}

/** The groups of a memory store, each as long as one of its runs. */
export class MemoryGroups {
  readonly #groups = new Map<string, Group>();
  readonly #byRun = new Map<string, Group>();

  add(id: string, runs: readonly MemoryRun[]): void {
    const members = runs.map((run, index): [string, Member] => [run.row.id, { index, run, position: null }]);
    const group = { id, size: runs.length, ended: 0, members: new Map(members) };
    this.#groups.set(id, group);
    for (const [runId] of members) this.#byRun.set(runId, group);
  }

  of(runId: string): string | null {
    return this.#byRun.get(runId)?.id ?? null;
  }

  /** Counts the end of a run, of a group or not. */
  countEnd(runId: string): void {
    const group = this.#byRun.get(runId);
    if (group === undefined) return;
    group.ended += 1;
    group.members.get(runId)!.position = group.ended;
  }

  remove(runId: string): void {
    const group = this.#byRun.get(runId);
    if (group === undefined) return;
    this.#byRun.delete(runId);
    group.members.delete(runId);
    if (group.members.size === 0) this.#groups.delete(group.id);
  }

  read(id: string, after: number, most: number): GroupSlice | null {
    const group = this.#groups.get(id);
    if (group === undefined) return null;
    const ends = [...group.members.values()]
      .flatMap(({ position, index, run }) =>
        position === null ? [] : [{ position, index, runId: run.row.id, endedMark: run.endedMark! }],
      )
      .sort((a, b) => a.position - b.position);
    const { size, ended } = group;
    return {
      size,
      ended,
      oldest: ends[0]?.position ?? ended + 1,
      ends: ends.filter(({ position }) => position > after).slice(0, most),
    };
  }
}
