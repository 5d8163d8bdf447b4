import { LatentkitError } from "../../errors.js";
import { discardFiles, type ItemNames, settleFiles } from "../../io/item-files.js";
import type { BatchQueue } from "./batch-queue.js";
import { createChanges } from "./changes.js";
import { fillTemplate, namesOf } from "./names.js";
import { withOrigin } from "./origin.js";
import { BatchRecords, type Recorded } from "./records.js";
import type { Attempt, Runner, RunnerItem } from "./runner.js";
import { Slots } from "./slots.js";
import type { BatchEvent, BatchItem, BatchStatus, ItemValues } from "./types.js";
import { untilStopped } from "./until-stopped.js";

export interface BatchRunOptions {
  readonly journal?: string;
  readonly resume: boolean;
  readonly failFast: boolean;
  readonly partial: boolean;
  readonly retry: number;
  readonly name?: string;
  readonly total?: number;
  readonly drain?: AbortSignal;
  readonly signal?: AbortSignal;
  /** Absolute. */
  readonly outputDir: string;
  readonly clock: () => Date;
}

/** The graph of a batch, and what follows from it. */
export interface BatchGraph {
  readonly prompt: Readonly<Record<string, unknown>>;
  readonly prefixes: Readonly<Record<string, string>>;
  readonly hash: string;
  /** Values that all items share; an item's own win. */
  readonly set: ItemValues;
  /** About the graph itself, told once. */
  readonly note?: string;
  /** Why an item with these values cannot be rendered; undefined where it can. */
  faultOf(values: ItemValues): LatentkitError | undefined;
  /** An item's values as the journal shows them. */
  shown(values: ItemValues): ItemValues;
}

/** Items that are known beyond those that run. */
const AHEAD = 16;
/** With a journal: what it says of them reaches the disk while others render, and one that writes pictures back takes a second. */
const AHEAD_ON_RECORD = 512;

type Happening = BatchEvent extends infer E ? (E extends BatchEvent ? Omit<E, "at"> : never) : never;

/** One item on its way. */
interface Work extends RunnerItem {
  readonly index: number;
  readonly recorded: Recorded;
  readonly item: BatchItem;
}

type Begun = Pick<Work, "index" | "values" | "recorded">;

const goneWarning = (count: number) =>
  count === 1
    ? "One item that the journal has as finished lacks a file, or the end of one; it is rendered again."
    : `${count} items that the journal has as finished lack files, or the ends of some; they are rendered again.`;

const partialWarning = (count: number, isKept: boolean) => {
  const [subject, are] = count === 1 ? ["One item", "it is"] : [`${count} items`, "they are"];
  const when = isKept ? "without partial (--partial) " : "";
  return `${subject} of an earlier run went without outputs that could not be computed; ${when}${are} rendered again.`;
};

/** One run of a batch, from its first item to its last or to where it is stopped. */
export class BatchRun {
  private readonly started = performance.now();
  private readonly slots: Slots;
  private readonly window: Slots;
  private readonly counts = { done: 0, skipped: 0, failed: 0 };
  private records!: BatchRecords;
  /** The journal can no longer be written. */
  private failure: { error: unknown } | undefined;
  private isCut = false;

  constructor(
    private readonly graph: BatchGraph,
    private readonly runner: Runner,
    private readonly options: BatchRunOptions,
    private readonly queue: BatchQueue<BatchEvent>,
  ) {
    this.slots = new Slots(runner.slots);
    this.window = new Slots(runner.slots + (options.journal === undefined ? AHEAD : AHEAD_ON_RECORD));
  }

  /** Renders all items. Rejects where the journal cannot be opened or written, or the items cannot be read on. */
  async render(items: AsyncIterable<BatchItem>): Promise<void> {
    const { hash, prefixes } = this.graph;
    this.records = await BatchRecords.open({ ...this.options, hash, prefixes });
    try {
      await this.records.recover();
      const { journal, total } = this.options;
      const { finished, gone } = this.records;
      this.tell({ type: "batch-start", journal, total, finished, concurrency: this.runner.concurrency });
      if (this.graph.note !== undefined) this.tell({ type: "warning", message: this.graph.note });
      if (gone > 0) this.tell({ type: "warning", message: goneWarning(gone) });
      const { partial } = this.records;
      if (partial > 0) this.tell({ type: "warning", message: partialWarning(partial, this.options.partial) });
      const broken = await this.pull(items);
      await this.window.all();
      const failure = this.failure ?? broken;
      if (failure !== undefined) throw failure.error;
      await this.end();
    } finally {
      await this.records.close();
    }
  }

  private get isStopped(): boolean {
    const { signal, drain, failFast } = this.options;
    if (signal?.aborted === true || drain?.aborted === true) this.isCut = true;
    return this.isCut || this.failure !== undefined || (failFast && this.counts.failed > 0);
  }

  /** Answers what the items could not be read on for: those before it are rendered. */
  private async pull(items: AsyncIterable<BatchItem>): Promise<{ error: unknown } | undefined> {
    let index = 0;
    const changes = createChanges();
    try {
      const onStop = () => {
        this.isCut = true;
      };
      for await (const item of untilStopped(items, this.options, onStop)) {
        await this.queue.room();
        if (this.isStopped) return undefined;
        const recorded = this.records.find(index, item);
        if (recorded.isDone) {
          this.counts.skipped++;
          this.tell({ type: "item-skipped", index, place: recorded.place });
        } else {
          await this.window.take();
          void this.handle(item, index, recorded, changes(item.values)).finally(() => this.window.give());
        }
        index++;
      }
      return undefined;
    } catch (error) {
      return { error };
    }
  }

  /** Never rejects. */
  private async handle(item: BatchItem, index: number, recorded: Recorded, passing: readonly string[]): Promise<void> {
    try {
      const { values } = item;
      const common = this.graph.faultOf(values);
      const fault = item.fault ?? (common && withOrigin(common, item));
      if (fault !== undefined) return await this.fail({ index, values, recorded }, fault, 1);
      let work: Work;
      try {
        work = { index, values, recorded, passing, names: this.namesFor(recorded, values), item };
      } catch (error) {
        if (!(error instanceof LatentkitError)) throw error;
        return await this.fail({ index, values, recorded }, withOrigin(error, item), 1);
      }
      await this.records.intent(recorded, this.graph.shown(values), namesOf(this.graph.prefixes, values, work.names));
      await (await this.inTurn(() => this.attempts(work)))?.();
    } catch (error) {
      this.failure ??= { error };
    }
  }

  private namesFor({ place, own }: Recorded, values: ItemValues): ItemNames {
    const { id, first } = this.records.header;
    const number = first + place;
    const { name: template } = this.options;
    const { prompt, set } = this.graph;
    const known = { index: place, number, values: { ...set, ...values }, prompt };
    const name = template === undefined ? undefined : fillTemplate(template, known);
    return { batch: id, index: place, number, name, isKept: this.records.isKept, own };
  }

  private async inTurn<T>(work: () => Promise<T>): Promise<T> {
    await this.slots.take();
    try {
      return await work();
    } finally {
      this.slots.give();
    }
  }

  /** Answers how a finished item is put on record, which the next one in its slot does not wait for. */
  private async attempts(work: Work): Promise<(() => Promise<void>) | undefined> {
    const { index, values } = work;
    for (let attempt = 1; ; attempt++) {
      if (this.isStopped) return undefined;
      const started = performance.now();
      this.tell({ type: "item-start", index, values });
      const made = await this.attempt(work);
      const ms = performance.now() - started;
      if (made.status === "success") return () => this.finish(work, made, ms);
      await this.discard(work, made);
      if (made.status === "interrupted") {
        this.isCut = true;
        return undefined;
      }
      const error = withOrigin(made.error ?? new LatentkitError("node.failed", "The run failed."), work.item);
      const willRetry = attempt <= this.options.retry && error.meaning.exit === 1 && !this.isStopped;
      if (!willRetry) {
        await this.fail(work, error, attempt);
        return undefined;
      }
      await this.records.failed(work.recorded, attempt, error);
      this.tell({ type: "item-failed", index, values, error, attempt, willRetry, files: [] });
    }
  }

  private async attempt(work: Work): Promise<Attempt> {
    const { index, recorded } = work;
    const made = await this.runner.run(work);
    for (const message of made.warnings) this.tell({ type: "warning", index, message });
    if (made.error?.code !== "thread.lost") return made;
    this.tell({ type: "warning", index, message: `${made.error.message} Item ${index} is tried again, alone.` });
    await this.records.discard(recorded.place);
    return await this.runner.runAlone(work);
  }

  private async finish({ index, values, recorded }: Work, attempt: Attempt, ms: number): Promise<void> {
    const { files, leftOut, written = [] } = attempt;
    await this.records.done(recorded, attempt, ms);
    if (this.records.isKept) await settleFiles(written);
    this.counts.done++;
    this.tell({ type: "item-done", index, values, files, ...(leftOut.length > 0 && { leftOut }), ms });
  }

  private async discard({ recorded }: Work, { written }: Attempt): Promise<void> {
    if (written === undefined) await this.records.discard(recorded.place);
    else await discardFiles(written);
  }

  private async fail({ index, values, recorded }: Begun, error: LatentkitError, attempt: number): Promise<void> {
    await this.records.failed(recorded, attempt, error);
    this.counts.failed++;
    this.tell({ type: "item-failed", index, values, error, attempt, willRetry: false, files: [] });
  }

  private async end(): Promise<void> {
    const status: BatchStatus = this.isCut ? "interrupted" : this.counts.failed > 0 ? "failed" : "success";
    if (!this.isCut) await this.records.end(this.counts);
    this.tell({ type: "batch-done", status, ...this.counts, ms: performance.now() - this.started });
  }

  private tell(happening: Happening): void {
    this.queue.add({ ...happening, at: this.options.clock().getTime() } as BatchEvent);
  }
}
