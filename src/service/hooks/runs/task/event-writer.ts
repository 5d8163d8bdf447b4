import type { Timer } from "../../clock.js";
import type { RunFile } from "../../run.js";
import type { HeldRun } from "../../store/queue-store.js";
import type { EventBatch } from "../../store/store.js";
import type { RunContext } from "../run-context.js";
import { EventBuffer } from "./event-buffer.js";
import type { RunFiles } from "./run-files.js";

const RETRY_MS = 1000;

/** The events and files of one attempt of a run, on their way to the store. */
export class EventWriter {
  readonly #id: string;
  readonly #token: number;
  /** Id of the last stored event. */
  #after: number;
  readonly #context: RunContext;
  readonly #files: RunFiles;
  readonly #buffer: EventBuffer;
  readonly #onGone: () => void;
  #isClosed = false;
  #isDue = false;
  #writing: Promise<void> | undefined;
  #pause: Timer | undefined;

  /** `onGone`: called where the run is not running any more in the store. */
  constructor({ run, token }: HeldRun, context: RunContext, files: RunFiles, onGone: () => void) {
    this.#id = run.id;
    this.#token = token;
    this.#after = run.lastEventId;
    this.#context = context;
    this.#files = files;
    this.#buffer = new EventBuffer(context.eventLimits);
    this.#onGone = onGone;
  }

  add(event: string, data: string): void {
    this.#buffer.add(event, data);
    this.#writeSoon();
  }

  addFile(file: RunFile): void {
    this.#buffer.addFile(file);
    this.#writeSoon();
  }

  /** Writes no more by itself: what is left goes with the end. */
  close(): void {
    this.#isClosed = true;
  }

  /** Writes all but the last events. Returns these, with their files stored. Fails with store_unavailable. */
  async takeLast(): Promise<EventBatch> {
    if (this.#writing !== undefined || !this.#buffer.isShort) await this.#write();
    return { ...(await this.#files.store(this.#buffer.take())), after: this.#after };
  }

  /** Puts back a batch that could not be stored. */
  restore(batch: EventBatch): void {
    this.#buffer.restore(batch);
  }

  /** Writes at the end of this turn of the event loop: all its events go in one transaction. */
  #writeSoon(): void {
    if (this.#isDue || this.#writing !== undefined || this.#pause !== undefined) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      if (!this.#isClosed) this.#write().catch((error: unknown) => this.#writeLater(error));
    });
  }

  #writeLater(error: unknown): void {
    const { clock, observer } = this.#context;
    observer.fault?.("store", error);
    this.#pause = clock.setTimer(RETRY_MS, () => {
      this.#pause = undefined;
      this.#writeSoon();
    });
  }

  #write(): Promise<void> {
    if (this.#writing === undefined && this.#buffer.isEmpty) return Promise.resolve();
    this.#writing ??= this.#writeAll();
    return this.#writing;
  }

  async #writeAll(): Promise<void> {
    const { store, eventLimits, bus } = this.#context;
    try {
      while (!this.#buffer.isEmpty) {
        const batch = await this.#files.store(this.#buffer.take());
        try {
          const isAdded = await store.append(this.#id, { ...batch, after: this.#after }, eventLimits, this.#token);
          if (!isAdded) return this.#onGone();
          this.#after += batch.skip + batch.events.length;
        } catch (error) {
          this.#buffer.restore(batch);
          throw error;
        }
        bus.wake(this.#id);
        await new Promise((resolve) => setImmediate(resolve));
      }
    } finally {
      // in the same step as the last check of the buffer, or an event in between would wait for the next one
      this.#writing = undefined;
    }
  }
}
