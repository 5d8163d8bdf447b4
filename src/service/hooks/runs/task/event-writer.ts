import type { Timer } from "../../clock.js";
import type { RunFile, RunProgress } from "../../run.js";
import type { EventBatch, EventLimits, HeldRun, NewEvent } from "../../store/queue-store.js";
import type { RunContext } from "../run-context.js";

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

/** Most of one transaction: keeps the event loop answering. */
const BATCH_EVENTS = 500;
const BATCH_BYTES = 1024 * 1024;
/** Longest data of an event that is read for progress. */
const PROGRESS_CHARACTERS = 1024;

interface SizedEvent extends NewEvent {
  readonly bytes: number;
}

/** Events of one run on their way to the store; never holds more than the store would. @internal */
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

/** Files of a run that are stored at the same time. */
const FILES_AT_ONCE = 4;

/** The files of one attempt of a run, on their way to the file store. */
export class RunFiles {
  readonly #id: string;
  readonly #context: RunContext;
  readonly #signal: AbortSignal;
  readonly #onLoss: (error: unknown) => void;
  /** The first failure to store a file: the attempt cannot succeed any more. */
  loss: { readonly error: unknown } | undefined;
  /** Whether a file was left out since the run was cut off. */
  hasLeftOut = false;

  /** `onLoss`: called with the failure of each file that cannot be stored. */
  constructor(id: string, context: RunContext, signal: AbortSignal, onLoss: (error: unknown) => void) {
    this.#id = id;
    this.#context = context;
    this.#signal = signal;
    this.#onLoss = onLoss;
  }

  /** Stores the files of a batch, before readers learn of them. Returns the batch with those that are stored. */
  async store(batch: EventBatch): Promise<EventBatch> {
    const files: RunFile[] = [];
    for (let at = 0; at < batch.files.length; at += FILES_AT_ONCE) {
      const some = batch.files.slice(at, at + FILES_AT_ONCE);
      files.push(...(await Promise.all(some.map((file) => this.#put(file)))).flat());
    }
    return { ...batch, files };
  }

  /** Leaves the files on this machine where one of them is nowhere else. */
  async tidy(attempt: number): Promise<void> {
    if (this.loss !== undefined) return;
    const { files, observer } = this.#context;
    await files.tidy?.(this.#id, attempt).catch((error: unknown) => observer.fault?.("files", error));
  }

  async #put(file: RunFile): Promise<RunFile[]> {
    const { files, clock, observer } = this.#context;
    const since = clock.monotonic();
    const report = (isStored: boolean) => observer.fileStored?.({ isStored, ms: clock.monotonic() - since });
    try {
      const stored = await files.put(this.#id, file, this.#signal);
      if (stored !== file) report(true);
      return [stored];
    } catch (error) {
      if (this.#signal.aborted) {
        this.hasLeftOut = true;
        return [];
      }
      report(false);
      observer.fault?.("files", error);
      this.loss ??= { error };
      this.#onLoss(error);
      return [];
    }
  }
}
