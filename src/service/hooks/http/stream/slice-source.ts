import type { StoredEvent } from "../../run.js";
import { eventFrame } from "./sse.js";
import type { EncodedSlice, StreamMemory } from "./stream-memory.js";

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
