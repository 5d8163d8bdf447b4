import type { EventBatch, Keep, NewEvent } from "../store/store.js";
import type { RunFile, RunProgress } from "../types.js";
import { readProgress } from "./progress.js";

/** Most of one transaction: keeps the event loop answering. */
const BATCH_EVENTS = 500;
const BATCH_BYTES = 1024 * 1024;

interface Waiting extends NewEvent {
  readonly bytes: number;
}

/** Events of one run on their way to the store; never holds more than the store would keep. */
export class EventBuffer {
  readonly #keep: Keep;
  #events: Waiting[] = [];
  #files: RunFile[] = [];
  #bytes = 0;
  #skip = 0;
  #progress: RunProgress | undefined;

  constructor(keep: Keep) {
    this.#keep = keep;
  }

  get isEmpty(): boolean {
    return this.#events.length === 0 && this.#files.length === 0 && this.#skip === 0;
  }

  /** `take` takes all of it. */
  get isShort(): boolean {
    return this.#events.length <= BATCH_EVENTS && this.#bytes <= BATCH_BYTES;
  }

  add(event: string, data: string): void {
    const bytes = Buffer.byteLength(data);
    this.#events.push({ event, data, bytes });
    this.#bytes += bytes;
    this.#progress = readProgress(event, data) ?? this.#progress;
    this.#dropHead();
  }

  addFile(file: RunFile): void {
    this.#files.push(file);
  }

  /** Takes the oldest events out, as much as one transaction should carry. */
  take(): EventBatch {
    let count = 0;
    let bytes = 0;
    while (count < this.#events.length && count < BATCH_EVENTS && (count === 0 || bytes < BATCH_BYTES)) {
      bytes += this.#events[count]!.bytes;
      count += 1;
    }
    const events = this.#events.splice(0, count);
    const batch = { skip: this.#skip, events, files: this.#files, progress: this.#progress };
    this.#bytes -= bytes;
    this.#skip = 0;
    this.#files = [];
    this.#progress = undefined;
    return batch;
  }

  /** Puts a batch that could not be stored back in front. */
  restore(batch: EventBatch): void {
    const events = batch.events as readonly Waiting[];
    if (this.#skip > 0) {
      // events after this batch were dropped meanwhile: the batch goes the same way
      this.#skip += batch.skip + events.length;
    } else {
      this.#events = [...events, ...this.#events];
      this.#bytes += events.reduce((sum, { bytes }) => sum + bytes, 0);
      this.#skip = batch.skip;
    }
    this.#files = [...batch.files, ...this.#files];
    this.#progress ??= batch.progress;
    this.#dropHead();
  }

  /** What the store would trim from the head at once is not carried there; the newest event never is. */
  #dropHead(): void {
    let gone = 0;
    const isOver = () =>
      this.#events.length - gone > 1 &&
      (this.#events.length - gone > this.#keep.events || this.#bytes > this.#keep.bytes);
    while (isOver()) {
      this.#bytes -= this.#events[gone]!.bytes;
      gone += 1;
    }
    if (gone === 0) return;
    this.#events.splice(0, gone);
    this.#skip += gone;
  }
}
