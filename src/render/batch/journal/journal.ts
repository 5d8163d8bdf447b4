// The journal of a batch: open, find and append, recover. The other files of this folder are imported only from inside it.
import { createHash } from "node:crypto";
import { join, relative, sep } from "node:path";
import type { LatentkitError } from "../../../base/errors.js";
import { escapeFault } from "../../../io/files/output-path.js";
import { printJson } from "../../../io/json/lossless.js";
import type { BatchItem, ItemValues } from "../../items/item.js";
import { fileAt, type RenderedFile } from "../../result.js";
import { JournalLog, type LogOptions } from "./log.js";
import { type JournalHeader, type JournalRecord, newHeader } from "./records.js";
import { Positions } from "./state.js";
import { sweep } from "./written-files.js";

export { isFinished } from "./records.js";

export interface JournalOptions extends LogOptions {
  /** Path of the journal; nothing is kept if absent. */
  readonly journal?: string;
}

/** An item's entry in the journal. */
export interface Entry {
  /** Number of the item in the journal, which the names of its files are made from. */
  readonly position: number;
  readonly key: string;
  /** Files of an item that an earlier run finished; undefined if it must be rendered. */
  readonly finished: readonly RenderedFile[] | undefined;
  /** Files that an earlier run wrote for the item, if others of its files are missing or truncated. */
  readonly leftovers: readonly string[];
}

/** A batch's items across runs; without a path nothing is kept, and every item is new. */
export class Journal {
  readonly #positions: Positions;
  readonly #options: JournalOptions;
  readonly #log: JournalLog | undefined;

  private constructor(
    options: JournalOptions,
    readonly header: Pick<JournalHeader, "id" | "first" | "graph" | "engine">,
    log: JournalLog | undefined,
  ) {
    this.#options = options;
    this.#log = log;
    this.#positions = new Positions(log?.state);
  }

  /** Fails with journal.refused and file.write-failed. */
  static async open(options: JournalOptions): Promise<Journal> {
    const { journal: path } = options;
    if (path === undefined) return new Journal(options, await newHeader(options), undefined);
    const log = await JournalLog.open(path, options);
    return new Journal(options, log.header, log);
  }

  /** Whether records are kept: without them, an interrupted batch cannot continue. */
  get isKept(): boolean {
    return this.#log !== undefined;
  }

  /** Number of items that earlier runs finished and whose files exist. */
  get finished(): number {
    return this.#log?.state.finished ?? 0;
  }

  /** Sentences about items of earlier runs that are rendered again. */
  warnings(): string[] {
    const { gone = 0, partial = 0 } = this.#log?.state ?? {};
    return [
      ...(gone > 0 ? [goneWarning(gone)] : []),
      ...(partial > 0 ? [partialWarning(partial, this.#options.partial)] : []),
    ];
  }

  /** Removes the files that a kill left of unfinished items. */
  async recover(): Promise<void> {
    const { outputDir, resume } = this.#options;
    if (this.#log === undefined) return;
    const { replaced, state } = this.#log;
    if (replaced !== undefined) await sweep(outputDir, replaced, () => false);
    if (resume) await sweep(outputDir, this.header.id, (position) => state.isRecorded(position));
  }

  /** Finds the entry of an item; takes the items in order, each once. */
  async find(index: number, item: BatchItem): Promise<Entry> {
    const key = itemKey(this.header, item);
    const position = this.#positions.of(index, key);
    if (this.#log === undefined) return { position, key, finished: undefined, leftovers: [] };
    const { state, files } = this.#log;
    const { outputDir } = this.#options;
    const isDone = state.of(position, key) === "done";
    const paths = isDone ? await files.at(state.offsetOf(position)) : undefined;
    const finished = paths?.map((path) => fileAt(path, outputDir));
    return { position, key, finished, leftovers: state.leftoversOf(position).map((path) => join(outputDir, path)) };
  }

  async begin({ position, key }: Entry, values: ItemValues, names: Readonly<Record<string, string>>): Promise<void> {
    await this.#append({ type: "intent", item: position, key, values, names });
  }

  async done(
    { position, key }: Entry,
    { files, leftOut }: { readonly files: readonly RenderedFile[]; readonly leftOut: readonly string[] },
    ms: number,
  ): Promise<void> {
    const paths = files.map(({ path }) => relative(this.#options.outputDir, path).split(sep).join("/"));
    // a file that a node reports elsewhere is not the batch's concern
    const inside = paths.filter((path) => escapeFault(path) === undefined);
    const left = leftOut.length > 0 ? { leftOut } : {};
    await this.#append({ type: "done", item: position, key, files: inside, ...left, ms: Math.round(ms) });
  }

  async failed({ position, key }: Entry, attempt: number, { code, message }: LatentkitError): Promise<void> {
    await this.#append({ type: "failed", item: position, key, attempt, error: { code, message } });
  }

  async end(counts: { readonly done: number; readonly skipped: number; readonly failed: number }): Promise<void> {
    await this.#append({ type: "end", ...counts });
  }

  /** Removes an item's files that a lost thread could no longer name. */
  async discard(position: number): Promise<void> {
    if (!this.isKept) return;
    await sweep(this.#options.outputDir, this.header.id, (other) => (other === position ? false : undefined));
  }

  async close(): Promise<void> {
    await this.#log?.close();
  }

  async #append(record: JournalRecord): Promise<void> {
    await this.#log?.append(record);
  }
}

/**
 * Key of an item: 16 hexadecimal digits, equal for values in another order. An item that could not be read has a different
 * key from an item of the same values.
 */
function itemKey({ graph, engine }: Journal["header"], { values, fault, state }: BatchItem): string {
  const sorted = Object.entries(values).sort(([a], [b]) => (a < b ? -1 : 1));
  const text = `${graph} ${engine} ${printJson(sorted)}${fault === undefined ? "" : " faulty"}${state === undefined ? "" : ` ${state}`}`;
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

const goneWarning = (count: number) =>
  count === 1
    ? "One item marked as finished has a missing or truncated file; it is rendered again."
    : `${count} items marked as finished have missing or truncated files; they are rendered again.`;

const partialWarning = (count: number, isKept: boolean) => {
  const [subject, are] = count === 1 ? ["One item", "it is"] : [`${count} items`, "they are"];
  const was = count === 1 ? "was" : "were";
  const when = isKept ? "without partial (--partial) " : "";
  return `${subject} of an earlier run ${was} rendered without outputs that could not be computed; ${when}${are} rendered again.`;
};
