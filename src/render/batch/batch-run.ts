import { onAbort } from "../../base/abort.js";
import { LatentkitError } from "../../base/errors.js";
import { discardFiles, type ItemNames, settleFiles } from "../../io/files/item-files.js";
import { isOutputLost } from "../../io/files/write-file.js";
import type { EventQueue } from "../event-queue.js";
import { type BatchItem, type ItemValues, withOrigin } from "../items/item.js";
import type { SeedDraw } from "../items/seeds.js";
import type { RunnerItem } from "../threads/messages.js";
import type { BatchEvent, BatchStatus } from "./events.js";
import { Intake, type ReadItem, Semaphore } from "./intake.js";
import { type Entry, Journal } from "./journal/journal.js";
import type { Attempt, Runner } from "./runner.js";

export interface BatchRunOptions {
  readonly journal?: string;
  readonly resume: boolean;
  readonly failFast: boolean;
  readonly partial: boolean;
  readonly retry: number;
  readonly total?: number;
  readonly drain?: AbortSignal;
  readonly signal?: AbortSignal;
  /** Absolute. */
  readonly outputDir: string;
  readonly clock: () => Date;
}

/** The graph of a batch, and what is derived from it. */
export interface BatchGraph {
  readonly prefixes: Readonly<Record<string, string>>;
  readonly hash: string;
  /** Remarks on the graph itself, reported once. */
  readonly notes: readonly string[];
  /** Fault of an item with these values; undefined for one that can be rendered. */
  faultOf(values: ItemValues): LatentkitError | undefined;
  /** An item's values with its random seeds drawn. */
  readonly seedsOf: SeedDraw["seedsOf"];
  /** An item's values without those that the journal must not hold. */
  redacted(values: ItemValues): ItemValues;
  /** File part of an item's names by the template; undefined without one. Fails with usage.invalid. */
  nameOf(item: BatchItem, position: number, number: number): string | undefined;
  /** Beginnings of the names of an item's files, by node id. */
  startsOf(values: ItemValues, names: Pick<ItemNames, "number" | "name">): Record<string, string>;
}

/** Items that are read ahead of those that run. */
const AHEAD = 16;
/** With a journal: an item's record reaches the disk while others render, and a disk that writes pictures back takes a second. */
const AHEAD_WITH_JOURNAL = 512;

type EventFacts = BatchEvent extends infer E ? (E extends BatchEvent ? Omit<E, "at"> : never) : never;

/** One item on its way. */
interface Task extends RunnerItem {
  readonly index: number;
  readonly entry: Entry;
  readonly item: BatchItem;
}

/** One run of a batch, from its first item to its last or until it is stopped. */
export class BatchRun {
  readonly #started = performance.now();
  readonly #slots: Semaphore;
  readonly #window: Semaphore;
  readonly #counts = { done: 0, skipped: 0, failed: 0 };
  #journal!: Journal;
  /** The journal can no longer be used. */
  #failure: { error: unknown } | undefined;
  #isCut = false;
  /** Why no more files can be written. */
  #lost: LatentkitError | undefined;
  /** Aborts with `lost`. */
  readonly #halt = new AbortController();
  readonly #graph: BatchGraph;
  readonly #runner: Runner;
  readonly #options: BatchRunOptions;
  readonly #queue: EventQueue<BatchEvent>;

  constructor(graph: BatchGraph, runner: Runner, options: BatchRunOptions, queue: EventQueue<BatchEvent>) {
    this.#graph = graph;
    this.#runner = runner;
    this.#options = options;
    this.#queue = queue;
    this.#slots = new Semaphore(runner.slots);
    this.#window = new Semaphore(runner.slots + (options.journal === undefined ? AHEAD : AHEAD_WITH_JOURNAL));
  }

  /** Renders all items. Rejects if the journal cannot be opened, or no more items can be read. */
  async render(items: AsyncIterable<BatchItem>): Promise<void> {
    const { hash, prefixes, notes } = this.#graph;
    this.#journal = await Journal.open({ ...this.#options, hash, prefixes });
    const leave = onAbort(this.#options.drain, () => this.#runner.stop?.());
    try {
      await this.#journal.recover();
      const { journal, total } = this.#options;
      const { finished } = this.#journal;
      this.#emit({ type: "batch-start", journal, total, finished, concurrency: this.#runner.concurrency });
      for (const message of [...notes, ...this.#journal.warnings()]) this.#emit({ type: "warning", message });
      const broken = await this.#renderEach(items);
      await this.#window.takeAll();
      const failure = this.#failure ?? broken;
      if (failure !== undefined) throw failure.error;
      await this.#end();
    } finally {
      leave();
      await this.#journal.close();
    }
  }

  get #isStopped(): boolean {
    const { signal, drain } = this.#options;
    if (signal?.aborted === true || drain?.aborted === true) this.#isCut = true;
    return this.#isCut || this.#failure !== undefined || this.#hasFailedFast;
  }

  get #hasFailedFast(): boolean {
    return this.#options.failFast && this.#counts.failed > 0;
  }

  /** Starts the items in order; returns the error that ended reading them: those before it are rendered. */
  async #renderEach(items: AsyncIterable<BatchItem>): Promise<{ error: unknown } | undefined> {
    const signals = [this.#options.signal, this.#options.drain, this.#halt.signal];
    const intake = new Intake(items, this.#journal, this.#graph.seedsOf, signals);
    try {
      for (let read = await intake.next(); read !== undefined; read = await intake.next()) {
        await this.#queue.room();
        if (this.#isStopped) return undefined;
        const { index, item, entry } = read;
        const { position, finished: files } = entry;
        if (files === undefined) {
          await this.#window.take();
          void this.#renderItem(read).finally(() => this.#window.give());
        } else {
          this.#counts.skipped++;
          this.#emit({ type: "item-skipped", index, values: item.values, position, files });
        }
      }
      if (intake.isCut) this.#isCut = true;
      return undefined;
    } catch (error) {
      return { error };
    } finally {
      intake.close();
    }
  }

  /** Renders an item and records the result. Never rejects. */
  async #renderItem(read: ReadItem): Promise<void> {
    try {
      const { index, item, entry } = read;
      const { values } = item;
      const task = this.#taskOf(read);
      if (task instanceof LatentkitError) return await this.#fail({ index, values, entry }, task, 1);
      const names = this.#graph.startsOf(values, task.names);
      await this.#journal.begin(entry, this.#graph.redacted(values), names);
      await this.#slots.take();
      const success = await this.#attempts(task).finally(() => this.#slots.give());
      // the next item in the slot does not wait for the record
      if (success !== undefined) await this.#finish(task, success.attempt, success.ms);
    } catch (error) {
      if (isOutputLost(error)) this.#lose(error);
      else this.#failure ??= { error };
    }
  }

  /** An item as the runner takes it, or why it cannot be rendered. */
  #taskOf({ index, item, entry, passing }: ReadItem): Task | LatentkitError {
    const { values, fault } = item;
    if (fault !== undefined) return fault;
    try {
      const fault = this.#graph.faultOf(values);
      if (fault !== undefined) throw fault;
      return { index, values, entry, passing, names: this.#namesOf(entry, item), item };
    } catch (error) {
      if (!(error instanceof LatentkitError)) throw error;
      return withOrigin(error, item);
    }
  }

  #namesOf({ position, leftovers }: Entry, item: BatchItem): ItemNames {
    const { isKept, header } = this.#journal;
    const number = header.first + position;
    const name = this.#graph.nameOf(item, position, number);
    return { batch: header.id, position, number, name, isKept, own: leftovers };
  }

  /** Tries an item until it succeeds or fails for good; undefined if it does not succeed. */
  async #attempts(task: Task): Promise<{ attempt: Attempt; ms: number } | undefined> {
    const { index, values, entry } = task;
    for (let number = 1; ; number++) {
      if (this.#isStopped) return undefined;
      const started = performance.now();
      this.#emit({ type: "item-start", index, values });
      const attempt = await this.#attempt(task);
      if (attempt.status === "success") return { attempt, ms: attempt.ms ?? performance.now() - started };
      if (attempt.written === undefined) await this.#journal.discard(entry.position);
      else await discardFiles(attempt.written);
      if (attempt.status === "interrupted") {
        // an item that did not start because another failed was not interrupted
        if (!this.#hasFailedFast) this.#isCut = true;
        return undefined;
      }
      if (isOutputLost(attempt.error)) {
        this.#lose(attempt.error);
        return undefined;
      }
      const error = withOrigin(attempt.error ?? new LatentkitError("node.failed", "The run failed."), task.item);
      const willRetry = number <= this.#options.retry && error.meaning.exit === 1 && !this.#isStopped;
      if (!willRetry) {
        await this.#fail(task, error, number);
        return undefined;
      }
      await this.#journal.failed(entry, number, error);
      this.#emit({ type: "item-failed", index, values, error, attempt: number, willRetry, files: [] });
    }
  }

  async #attempt(task: Task): Promise<Attempt> {
    const { index, entry } = task;
    const attempt = await this.#runner.run(task);
    for (const message of attempt.warnings) this.#emit({ type: "warning", index, message });
    if (attempt.error?.code !== "thread.lost") return attempt;
    this.#emit({ type: "warning", index, message: `${attempt.error.message} Item ${index} is retried alone.` });
    await this.#journal.discard(entry.position);
    return await this.#runner.runAlone(task);
  }

  async #finish({ index, values, entry }: Task, attempt: Attempt, ms: number): Promise<void> {
    const { files, leftOut, written = [] } = attempt;
    await this.#journal.done(entry, attempt, ms);
    if (this.#journal.isKept) await settleFiles(written);
    this.#counts.done++;
    this.#emit({ type: "item-done", index, values, files, ...(leftOut.length > 0 && { leftOut }), ms });
  }

  async #fail(
    { index, values, entry }: Pick<Task, "index" | "values" | "entry">,
    error: LatentkitError,
    attempt: number,
  ): Promise<void> {
    await this.#journal.failed(entry, attempt, error);
    this.#counts.failed++;
    if (this.#hasFailedFast) this.#runner.stop?.();
    this.#emit({ type: "item-failed", index, values, error, attempt, willRetry: false, files: [] });
  }

  // A full disk or a missing permission stops the batch, since all further items would fail too.
  /** Stops the batch as `drain` does: its other items would fail too, and the journal has those that were interrupted. */
  #lose(error: LatentkitError): void {
    this.#lost ??= error;
    this.#isCut = true;
    this.#runner.stop?.();
    this.#halt.abort();
  }

  async #end(): Promise<void> {
    const status: BatchStatus = this.#isCut ? "interrupted" : this.#counts.failed > 0 ? "failed" : "success";
    if (!this.#isCut) await this.#journal.end(this.#counts);
    const error = this.#lost && { error: this.#lost };
    this.#emit({ type: "batch-done", status, ...this.#counts, ms: performance.now() - this.#started, ...error });
  }

  #emit(event: EventFacts): void {
    this.#queue.add({ ...event, at: this.#options.clock().getTime() } as BatchEvent);
  }
}
