/** Encoded events that several readers may be sent. Never changes: ids are given out once. */
export interface EncodedSlice {
  readonly bytes: Buffer;
  readonly firstId: number;
  readonly lastId: number;
  /** Its last event is the run's terminal one. */
  readonly isEnd: boolean;
}

/** Somebody who holds slices until they have left the process. */
export interface SliceHolder {
  /** Gives up what it holds: it comes again and goes on by id. */
  cut(): void;
}

/** Largest part of the limit for slices that no reader waits for. */
const IDLE_PART = 1 / 8;

/**
 * Encoded slices of all readers within one limit. A slice counts once, however many hold it. What nobody holds is
 * dropped first, longest unused first; then the reader is cut that has taken nothing for the longest time.
 */
export class StreamMemory {
  readonly #limit: number;
  readonly #slices = new Map<string, EncodedSlice>();
  readonly #keys = new Map<EncodedSlice, { readonly key: string; holders: number }>();
  /** Held by nobody, longest unused first. */
  readonly #idle = new Set<EncodedSlice>();
  #idleBytes = 0;
  /** By the time of their last progress, oldest first. */
  readonly #holders = new Map<SliceHolder, Set<EncodedSlice>>();
  #bytes = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** More than half is in use: readers hold no more than they need. */
  get isTight(): boolean {
    return this.#bytes - this.#idleBytes > this.#limit / 2;
  }

  get(key: string): EncodedSlice | undefined {
    return this.#slices.get(key);
  }

  /** Keeps a slice for the next reader of it, as long as there is room. */
  add(key: string, slice: EncodedSlice): void {
    this.#slices.set(key, slice);
    this.#keys.set(slice, { key, holders: 0 });
    this.#bytes += slice.bytes.length;
    this.#rest(slice);
    this.#dropIdle(this.#limit * IDLE_PART);
  }

  /** Counts the slice as held until `moved` or `leave`; may cut others, never the holder itself. */
  hold(holder: SliceHolder, slice: EncodedSlice): void {
    const held = this.#holders.get(holder);
    if (held === undefined) this.#holders.set(holder, new Set([slice]));
    else held.add(slice);
    // dropped before it was held: it counts again
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

  /** Forgets what nobody holds. */
  clear(): void {
    this.#dropIdle(0);
  }

  #release(slice: EncodedSlice): void {
    const entry = this.#keys.get(slice)!;
    entry.holders -= 1;
    if (entry.holders > 0) return;
    this.#rest(slice);
    this.#dropIdle(this.#limit * IDLE_PART);
  }

  #rest(slice: EncodedSlice): void {
    this.#idle.add(slice);
    this.#idleBytes += slice.bytes.length;
  }

  #makeRoom(asking: SliceHolder): void {
    if (this.#bytes > this.#limit) this.#dropIdle(Math.max(0, this.#limit - (this.#bytes - this.#idleBytes)));
    for (const holder of [...this.#holders.keys()]) {
      if (this.#bytes <= this.#limit) return;
      if (holder === asking) continue;
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
