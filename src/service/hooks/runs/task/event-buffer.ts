import type { RunFile, RunProgress } from "../../run.js";
import type { EventBatch, EventLimits, NewEvent } from "../../store/store.js";

/** Most of one transaction: keeps the event loop answering. */
const BATCH_EVENTS = 500;
const BATCH_BYTES = 1024 * 1024;
/** Longest data of an event that is read for progress. */
const PROGRESS_CHARACTERS = 1024;

interface SizedEvent extends NewEvent {
  readonly bytes: number;
}

/** Events of one run on their way to the store; never holds more than the store would. */
export class EventBuffer {
  readonly #limits: EventLimits;
  #events: SizedEvent[] = [];
  #files: RunFile[] = [];
  #bytes = 0;
  #skip = 0;
  #progress: RunProgress | undefined;

  constructor(limits: EventLimits) {
    this.#limits = limits;
  }

  get isEmpty(): boolean {
    return this.#events.length === 0 && this.#files.length === 0 && this.#skip === 0;
  }

  /** The next `take` takes everything. */
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

  /** Takes out the oldest events, as many as one transaction should carry. */
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

  /** Puts back a batch that could not be stored, before all others. */
  restore(batch: EventBatch): void {
    const events = batch.events as readonly SizedEvent[];
    if (this.#skip > 0) {
      // events after this batch were dropped meanwhile, and so is the batch
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

  /** Drops the events that the store would trim at once, oldest first; never the newest. */
  #dropHead(): void {
    let dropped = 0;
    const isOver = () =>
      this.#events.length - dropped > 1 &&
      (this.#events.length - dropped > this.#limits.events || this.#bytes > this.#limits.bytes);
    while (isOver()) {
      this.#bytes -= this.#events[dropped]!.bytes;
      dropped += 1;
    }
    if (dropped === 0) return;
    this.#events.splice(0, dropped);
    this.#skip += dropped;
  }
}

/**
 * Progress in an event: of a node, by `progress { value, max, node }`, or of the run, by `node_done { done, nodes }`, with
 * null as node. Returns undefined for any other event or data. @internal
 */
export function readProgress(event: string, data: string): RunProgress | undefined {
  if ((event !== "progress" && event !== "node_done") || data.length > PROGRESS_CHARACTERS) return undefined;
  const parsed = (JSON.parse(data) ?? {}) as Record<string, unknown>;
  const { value, max, node } = event === "progress" ? parsed : { value: parsed.done, max: parsed.nodes, node: null };
  if (typeof value !== "number" || typeof max !== "number") return undefined;
  return { value, max, node: typeof node === "string" || typeof node === "number" ? String(node) : null };
}
