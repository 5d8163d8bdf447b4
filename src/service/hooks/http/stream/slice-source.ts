import { mountFileUrls } from "../../file-url.js";
import type { EventSlice } from "../../run.js";
import type { Runs } from "../../runs/create-runs.js";
import { eventFrame } from "./sse.js";
import type { EncodedSlice, StreamMemory } from "./stream-memory.js";

/** Reads and encodes the events of runs, once for all readers that are at the same id. */
export class SliceSource {
  readonly #runs: Pick<Runs, "read">;
  readonly #memory: StreamMemory;
  readonly #pending = new Map<string, Promise<EncodedSlice | undefined>>();

  constructor(runs: Pick<Runs, "read">, memory: StreamMemory) {
    this.#runs = runs;
    this.#memory = memory;
  }

  /**
   * Returns the next events after an id, for readers of the mount path `base`; undefined where there are none yet.
   * Fails with run_not_found.
   */
  async after(runId: string, id: number, base: string): Promise<EncodedSlice | undefined> {
    const key = `${runId} ${id} ${base}`;
    const pending = this.#pending.get(key);
    const shared = this.#memory.get(key) ?? (pending && (await pending));
    // another reader's "none yet" may be older than the event that woke this one
    if (shared !== undefined) return shared;
    const reading = this.#read(key, runId, id, base);
    this.#pending.set(key, reading);
    try {
      return await reading;
    } finally {
      if (this.#pending.get(key) === reading) this.#pending.delete(key);
    }
  }

  async #read(key: string, runId: string, id: number, base: string): Promise<EncodedSlice | undefined> {
    const { events, end } = await this.#runs.read(runId, id);
    if (events.length === 0) return undefined;
    const slice = encode(events, end, (data) => mountFileUrls(data, base, runId));
    if (this.#memory.get(key) === undefined) this.#memory.add(key, slice);
    return slice;
  }
}

function encode(events: EventSlice["events"], isEnd: boolean, mount: (data: string) => string): EncodedSlice {
  const frames = events.map((event) => eventFrame({ ...event, data: mount(event.data) }));
  return { bytes: Buffer.from(frames.join("")), firstId: events[0]!.id, lastId: events.at(-1)!.id, isEnd };
}
