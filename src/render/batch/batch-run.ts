import { randomBytes } from "node:crypto";
import { relative, sep } from "node:path";
import { LatentkitError } from "../../errors.js";
import { engineVersion } from "../../io/engine-version.js";
import type { BatchQueue } from "./batch-queue.js";
import { createChanges } from "./changes.js";
import { itemKey } from "./identity.js";
import { discardFiles, type ItemNames, settleFiles } from "./item-files.js";
import { Journal } from "./journal.js";
import type { JournalHeader } from "./journal-records.js";
import { fillTemplate, firstNumber, namesOf } from "./names.js";
import { withOrigin } from "./origin.js";
import { sweep } from "./recovery.js";
import type { Attempt, Runner, RunnerItem } from "./runner.js";
import { Slots } from "./slots.js";
import type { BatchEvent, BatchItem, BatchStatus, ItemValues } from "./types.js";
import { untilStopped } from "./until-stopped.js";

export interface BatchRunOptions {
  readonly journal?: string;
  readonly resume: boolean;
  readonly failFast: boolean;
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
  /** Why an item with these values cannot be rendered; undefined where it can. */
  faultOf(values: ItemValues): LatentkitError | undefined;
}

/** Items that are known beyond those that run: their intents reach the disk while others render. */
const AHEAD = 16;

type Happening = BatchEvent extends infer E ? (E extends BatchEvent ? Omit<E, "at"> : never) : never;

/** One item on its way. */
interface Work extends RunnerItem {
  readonly index: number;
  readonly key: string;
  readonly item: BatchItem;
}

/** One run of a batch, from its first item to its last or to where it is stopped. */
export class BatchRun {
  private readonly started = performance.now();
  private readonly slots: Slots;
  private readonly window: Slots;
  private readonly counts = { done: 0, skipped: 0, failed: 0 };
  private header!: JournalHeader;
  private journal: Journal | undefined;
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
    this.window = new Slots(runner.slots + AHEAD);
  }

  /** Renders all items. Rejects where the journal cannot be opened or written, or the items cannot be read on. */
  async render(items: AsyncIterable<BatchItem>): Promise<void> {
    await this.open();
    try {
      await this.recover();
      const { journal, total } = this.options;
      const finished = this.journal?.state.finished ?? 0;
      this.tell({ type: "batch-start", journal, total, finished, concurrency: this.runner.concurrency });
      const broken = await this.pull(items);
      await this.window.all();
      const failure = this.failure ?? broken;
      if (failure !== undefined) throw failure.error;
      await this.end();
    } finally {
      await this.journal?.close();
    }
  }

  private async open(): Promise<void> {
    const { journal: path, resume, outputDir } = this.options;
    const header = async (): Promise<JournalHeader> => ({
      type: "batch",
      version: 1,
      engine: engineVersion(),
      graph: this.graph.hash,
      id: randomBytes(6).toString("hex"),
      first: await firstNumber(outputDir, this.graph.prefixes),
    });
    this.journal = path === undefined ? undefined : await Journal.open(path, header, resume);
    this.header = this.journal?.header ?? (await header());
  }

  /** Takes away what a kill left of items that were not finished. */
  private async recover(): Promise<void> {
    const { journal } = this;
    if (journal === undefined) return;
    if (journal.replaced !== undefined) await sweep(this.options.outputDir, journal.replaced, () => false);
    if (!this.options.resume) return;
    await sweep(this.options.outputDir, this.header.id, (index) => journal.state.isDone(index));
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
        const key = itemKey(this.header, item.values);
        if (this.journal?.state.of(index, key) === "done") {
          this.counts.skipped++;
          this.tell({ type: "item-skipped", index });
        } else {
          await this.window.take();
          void this.handle(item, index, key, changes(item.values)).finally(() => this.window.give());
        }
        index++;
      }
      return undefined;
    } catch (error) {
      return { error };
    }
  }

  /** Never rejects. */
  private async handle(item: BatchItem, index: number, key: string, passing: readonly string[]): Promise<void> {
    try {
      const { values } = item;
      const common = this.graph.faultOf(values);
      const fault = item.fault ?? (common && withOrigin(common, item));
      if (fault !== undefined) return await this.refuse({ index, values, key }, fault);
      let work: Work;
      try {
        work = { index, values, key, passing, names: this.namesFor(index, values), item };
      } catch (error) {
        if (!(error instanceof LatentkitError)) throw error;
        return await this.refuse({ index, values, key }, withOrigin(error, item));
      }
      const names = namesOf(this.graph.prefixes, values, work.names);
      await this.journal?.append({ type: "intent", item: index, key, values, names });
      await this.slots.take();
      try {
        await this.attempts(work);
      } finally {
        this.slots.give();
      }
    } catch (error) {
      this.failure ??= { error };
    }
  }

  private namesFor(index: number, values: ItemValues): ItemNames {
    const number = this.header.first + index;
    const { name: template } = this.options;
    const { prompt, set } = this.graph;
    const known = { index, number, values: { ...set, ...values }, prompt };
    const name = template === undefined ? undefined : fillTemplate(template, known);
    return { batch: this.header.id, index, number, name, isKept: this.journal !== undefined };
  }

  private async attempts(work: Work): Promise<void> {
    const { index, values } = work;
    for (let attempt = 1; ; attempt++) {
      if (this.isStopped) return;
      const started = performance.now();
      this.tell({ type: "item-start", index, values });
      const made = await this.attempt(work);
      if (made.status === "success") return await this.finish(work, made, performance.now() - started);
      await this.discard(work, made);
      if (made.status === "interrupted") {
        this.isCut = true;
        return;
      }
      const error = withOrigin(made.error ?? new LatentkitError("node.failed", "The run failed."), work.item);
      const willRetry = attempt <= this.options.retry && error.meaning.exit === 1 && !this.isStopped;
      if (!willRetry) return await this.fail(work, error, attempt);
      await this.note(work, error, attempt);
      this.tell({ type: "item-failed", index, values, error, attempt, willRetry, files: [] });
    }
  }

  private async attempt(work: Work): Promise<Attempt> {
    const { index } = work;
    const made = await this.runner.run(work);
    for (const message of made.warnings) this.tell({ type: "warning", index, message });
    if (made.error?.code !== "thread.lost") return made;
    this.tell({ type: "warning", index, message: `${made.error.message} Item ${index} is tried again, alone.` });
    await this.discardLost(index);
    return await this.runner.runAlone(work);
  }

  private async finish({ index, values, key }: Work, { files, written = [] }: Attempt, ms: number): Promise<void> {
    const { outputDir } = this.options;
    const paths = files.map(({ path }) => relative(outputDir, path).split(sep).join("/"));
    await this.journal?.append({ type: "done", item: index, key, files: paths, ms: Math.round(ms) });
    if (this.journal !== undefined) await settleFiles(written);
    this.counts.done++;
    this.tell({ type: "item-done", index, values, files, ms });
  }

  private async discard({ index }: Work, { written }: Attempt): Promise<void> {
    if (written === undefined) await this.discardLost(index);
    else await discardFiles(written);
  }

  /** A thread that is lost leaves no word of what it had written. */
  private async discardLost(item: number): Promise<void> {
    if (this.journal === undefined) return;
    await sweep(this.options.outputDir, this.header.id, (index) => (index === item ? false : undefined));
  }

  private async refuse(work: Pick<Work, "index" | "values" | "key">, error: LatentkitError): Promise<void> {
    await this.fail(work, error, 1);
  }

  private async fail(work: Pick<Work, "index" | "values" | "key">, error: LatentkitError, attempt: number) {
    await this.note(work, error, attempt);
    this.counts.failed++;
    const { index, values } = work;
    this.tell({ type: "item-failed", index, values, error, attempt, willRetry: false, files: [] });
  }

  private async note({ index, key }: Pick<Work, "index" | "key">, error: LatentkitError, attempt: number) {
    const { code, message } = error;
    await this.journal?.append({ type: "failed", item: index, key, attempt, error: { code, message } });
  }

  private async end(): Promise<void> {
    const status: BatchStatus = this.isCut ? "interrupted" : this.counts.failed > 0 ? "failed" : "success";
    if (!this.isCut) await this.journal?.append({ type: "end", ...this.counts });
    this.tell({ type: "batch-done", status, ...this.counts, ms: performance.now() - this.started });
  }

  private tell(happening: Happening): void {
    this.queue.add({ ...happening, at: this.options.clock().getTime() } as BatchEvent);
  }
}
