import type { StoredEvent } from "../../run.js";

/** Encoded events, shared by readers. Immutable: an id is never used twice. */
export interface EncodedSlice {
  readonly bytes: Buffer;
  readonly firstId: number;
  readonly lastId: number;
  /** The last event is the run's terminal one. */
  readonly isEnd: boolean;
}

/** A reader's connection, which holds slices until they have left the process. */
export interface SliceHolder {
  /** Ends the connection; the reader comes back and resumes by id. */
  cut(): void;
}

/** Largest part of the limit for slices without a holder. */
const IDLE_PART = 1 / 8;

/**
 * Encoded slices of all readers within one limit. A slice counts once, however many hold it. Slices without a holder are
 * dropped first, least recently used first; then the reader without progress for the longest time is cut.
 */
export class StreamMemory {
  readonly #limit: number;
  readonly #slices = new Map<string, EncodedSlice>();
  readonly #keys = new Map<EncodedSlice, { readonly key: string; holders: number }>();
  /** Slices without a holder, least recently used first. */
  readonly #idle = new Set<EncodedSlice>();
  #idleBytes = 0;
  /** Holders by the time of their last progress, oldest first. */
  readonly #holders = new Map<SliceHolder, Set<EncodedSlice>>();
  #bytes = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** More than half is in use: readers should hold as little as they can. */
  get isTight(): boolean {
    return this.#bytes - this.#idleBytes > this.#limit / 2;
  }

  get(key: string): EncodedSlice | undefined {
    return this.#slices.get(key);
  }

  /** Caches a slice for its next reader, as long as there is room. */
  add(key: string, slice: EncodedSlice): void {
    this.#slices.set(key, slice);
    this.#keys.set(slice, { key, holders: 0 });
    this.#bytes += slice.bytes.length;
    this.#addIdle(slice);
    this.#dropIdle(this.#limit * IDLE_PART);
  }

  /** Counts the slice as held until `moved` or `leave`; may cut other holders, never this one. */
  hold(holder: SliceHolder, slice: EncodedSlice): void {
    const held = this.#holders.get(holder);
    if (held === undefined) this.#holders.set(holder, new Set([slice]));
    else held.add(slice);
    // it was dropped before: it counts again
    if (!this.#keys.has(slice)) {
      this.#keys.set(slice, { key: "", holders: 0 });
      this.#bytes += slice.bytes.length;
    }
    this.#keys.get(slice)!.holders += 1;
    if (this.#idle.delete(slice)) this.#idleBytes -= slice.bytes.length;
    this.#makeRoom(holder);
  }

  /** The slice has left the process. */
  moved(holder: SliceHolder, slice: EncodedSlice): void {
    const held = this.#holders.get(holder);
    if (!held?.delete(slice)) return;
    this.#holders.delete(holder);
    if (held.size > 0) this.#holders.set(holder, held);
    this.#release(slice);
  }

  leave(holder: SliceHolder): void {
    const held = this.#holders.get(holder);
    this.#holders.delete(holder);
    for (const slice of held ?? []) this.#release(slice);
  }

  /** Drops all slices without a holder. */
  clear(): void {
    this.#dropIdle(0);
  }

  #release(slice: EncodedSlice): void {
    const entry = this.#keys.get(slice)!;
    entry.holders -= 1;
    if (entry.holders > 0) return;
    this.#addIdle(slice);
    this.#dropIdle(this.#limit * IDLE_PART);
  }

  #addIdle(slice: EncodedSlice): void {
    this.#idle.add(slice);
    this.#idleBytes += slice.bytes.length;
  }

  #makeRoom(exempt: SliceHolder): void {
    if (this.#bytes > this.#limit) this.#dropIdle(Math.max(0, this.#limit - (this.#bytes - this.#idleBytes)));
    for (const holder of [...this.#holders.keys()]) {
      if (this.#bytes <= this.#limit) return;
      if (holder === exempt) continue;
      this.leave(holder);
      holder.cut();
      this.#dropIdle(0);
    }
  }

  #dropIdle(most: number): void {
    for (const slice of this.#idle) {
      if (this.#idleBytes <= most) return;
      const { key } = this.#keys.get(slice)!;
      this.#idle.delete(slice);
      this.#keys.delete(slice);
      if (this.#slices.get(key) === slice) this.#slices.delete(key);
      this.#idleBytes -= slice.bytes.length;
      this.#bytes -= slice.bytes.length;
    }
  }
}

/** Reads the next events of a run or group after an id, with addresses for readers of the mount path `base`. */
export type ReadEvents = (
  id: string,
  after: number,
  base: string,
) => Promise<{
  readonly events: readonly StoredEvent[];
  /** Larger than `after` + 1 where events before it were removed. */
  readonly firstId: number;
  /** Nothing will follow. */
  readonly end: boolean;
}>;

/** Reads and encodes events, once for all readers that are at the same id. */
export class SliceSource {
  readonly #read: ReadEvents;
  readonly #memory: StreamMemory;
  readonly #pending = new Map<string, Promise<EncodedSlice | undefined>>();

  constructor(read: ReadEvents, memory: StreamMemory) {
    this.#read = read;
    this.#memory = memory;
  }

  /** Returns the next events after an id; undefined where there are none yet. Fails as `read` does. */
  async after(id: string, after: number, base: string): Promise<EncodedSlice | undefined> {
    const key = `${id} ${after} ${base}`;
    const pending = this.#pending.get(key);
    const shared = this.#memory.get(key) ?? (pending && (await pending));
    // another reader's "none yet" may be older than the event that woke this one
    if (shared !== undefined) return shared;
    const reading = this.#encode(key, id, after, base);
    this.#pending.set(key, reading);
    try {
      return await reading;
    } finally {
      if (this.#pending.get(key) === reading) this.#pending.delete(key);
    }
  }

  async #encode(key: string, id: string, after: number, base: string): Promise<EncodedSlice | undefined> {
    const { events, firstId, end } = await this.#read(id, after, base);
    if (events.length === 0) return undefined;
    const bytes = Buffer.from(events.map(eventFrame).join(""));
    const slice = { bytes, firstId, lastId: events.at(-1)!.id, isEnd: end };
    if (this.#memory.get(key) === undefined) this.#memory.add(key, slice);
    return slice;
  }
}

/** A comment that prevents proxies from closing a silent stream. */
export const KEEP_ALIVE_FRAME = ": keep-alive\n\n";

const RECONNECT_MS = 3000;

/** The first frame of every stream: no id, so it never moves a reader's cursor. */
export function replayMetaFrame(meta: {
  replay_truncated: boolean;
  oldest_event_id: number;
  requested_last_event_id: number;
}): string {
  return `event: replay_meta\ndata: ${JSON.stringify(meta)}\nretry: ${RECONNECT_MS}\n\n`;
}

/** One stored event as a frame. Line breaks would end a field, so they become blanks. */
export function eventFrame({ id, event, data }: StoredEvent): string {
  return `id: ${id}\nevent: ${oneLine(event)}\ndata: ${oneLine(data)}\n\n`;
}

const oneLine = (text: string) => text.replace(/[\r\n]+/g, " ");

/**
 * Id after which a stream begins: the Last-Event-ID header, else the query's last_event_id, else -1 (all). undefined
 * where it is not one integer. It may be larger than any id.
 */
export function readCursor(
  header: string | undefined,
  query: readonly string[],
): { after: number; isResume: boolean } | undefined {
  const fromHeader = header?.trim() ?? "";
  if (fromHeader !== "") return cursor(fromHeader, true);
  if (query.length > 1) return undefined;
  const fromQuery = query[0]?.trim() ?? "";
  return fromQuery === "" ? { after: -1, isResume: false } : cursor(fromQuery, false);
}

function cursor(text: string, isResume: boolean): { after: number; isResume: boolean } | undefined {
  if (!/^-?\d+$/.test(text)) return undefined;
  return { after: Math.max(-1, Math.min(Number(text), Number.MAX_SAFE_INTEGER)), isResume };
}
