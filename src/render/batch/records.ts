import { randomBytes } from "node:crypto";
import { join, relative, sep } from "node:path";
import type { LatentkitError } from "../../errors.js";
import { placeFault } from "../../io/output-path.js";
import { packageVersion } from "../../native/package.js";
import { itemKey } from "./identity.js";
import { Journal } from "./journal/journal.js";
import type { JournalHeader, JournalRecord } from "./journal/journal-records.js";
import { firstNumber } from "./names.js";
import { Places } from "./places.js";
import { createPresence } from "./presence.js";
import { sweep } from "./recovery.js";
import type { Attempt } from "./runner.js";
import type { BatchItem, ItemValues } from "./types.js";

/** What a batch's records need to know of it. */
export interface RecordsOptions {
  /** Path of the journal; nothing is kept where absent. */
  readonly journal?: string;
  readonly resume: boolean;
  /** Items that an earlier run rendered without some outputs are finished. */
  readonly partial: boolean;
  /** Absolute. */
  readonly outputDir: string;
  /** Hash of the graph, and the prefixes of the nodes that save. */
  readonly hash: string;
  readonly prefixes: Readonly<Record<string, string>>;
}

/** An item as the journal has it. */
export interface Recorded {
  /** Number of the item in the journal; its files' names follow from it. */
  readonly place: number;
  readonly key: string;
  readonly isDone: boolean;
  /** Paths of files that an earlier run wrote for it, of which others are gone, or not whole. */
  readonly own: readonly string[];
}

type Failed = Pick<LatentkitError, "code" | "message">;

/** What is known of a batch's items beyond this run: its journal, where there is one. */
export class BatchRecords {
  private readonly places: Places;

  private constructor(
    private readonly options: RecordsOptions,
    readonly header: JournalHeader,
    private readonly journal: Journal | undefined,
  ) {
    this.places = new Places(journal?.state);
  }

  /** Fails as Journal.open. */
  static async open(options: RecordsOptions): Promise<BatchRecords> {
    const { journal: path, resume, partial, outputDir, hash, prefixes } = options;
    const header = async (): Promise<JournalHeader> => ({
      type: "batch",
      version: 1,
      engine: packageVersion(),
      graph: hash,
      id: randomBytes(6).toString("hex"),
      first: await firstNumber(outputDir, prefixes),
    });
    const presence = createPresence(outputDir);
    const journal = path === undefined ? undefined : await Journal.open(path, header, resume, presence, partial);
    return new BatchRecords(options, journal?.header ?? (await header()), journal);
  }

  get isKept(): boolean {
    return this.journal !== undefined;
  }

  get finished(): number {
    return this.journal?.state.finished ?? 0;
  }

  /** Finished items that have lost a file since. */
  get gone(): number {
    return this.journal?.state.gone ?? 0;
  }

  /** Items that an earlier run rendered without some of their outputs. */
  get partial(): number {
    return this.journal?.state.partial ?? 0;
  }

  /** Takes away what a kill left of items that were not finished. */
  async recover(): Promise<void> {
    const { journal } = this;
    if (journal === undefined) return;
    if (journal.replaced !== undefined) await sweep(this.options.outputDir, journal.replaced, () => false);
    if (!this.options.resume) return;
    await sweep(this.options.outputDir, this.header.id, (place) => journal.state.isRecorded(place));
  }

  /** The items in order, each once. */
  find(index: number, { values, fault }: BatchItem): Recorded {
    const key = itemKey(this.header, values, fault !== undefined);
    const place = this.places.of(index, key);
    const state = this.journal?.state;
    const own = (state?.leftOf(place) ?? []).map((file) => join(this.options.outputDir, file));
    return { place, key, isDone: state?.of(place, key) === "done", own };
  }

  async intent({ place, key }: Recorded, values: ItemValues, names: Readonly<Record<string, string>>): Promise<void> {
    await this.append({ type: "intent", item: place, key, values, names });
  }

  async done(
    { place, key }: Recorded,
    { files, leftOut }: Pick<Attempt, "files" | "leftOut">,
    ms: number,
  ): Promise<void> {
    const paths = files.map(({ path }) => relative(this.options.outputDir, path).split(sep).join("/"));
    // what a node reports elsewhere is not the batch's to look after
    const inside = paths.filter((path) => placeFault(path) === undefined);
    const left = leftOut.length > 0 ? { leftOut } : {};
    await this.append({ type: "done", item: place, key, files: inside, ...left, ms: Math.round(ms) });
  }

  async failed({ place, key }: Recorded, attempt: number, { code, message }: Failed): Promise<void> {
    await this.append({ type: "failed", item: place, key, attempt, error: { code, message } });
  }

  async end(counts: { readonly done: number; readonly skipped: number; readonly failed: number }): Promise<void> {
    await this.append({ type: "end", ...counts });
  }

  /** A lost thread leaves no word of what it had written for an item. */
  async discard(place: number): Promise<void> {
    if (!this.isKept) return;
    await sweep(this.options.outputDir, this.header.id, (other) => (other === place ? false : undefined));
  }

  async close(): Promise<void> {
    await this.journal?.close();
  }

  private async append(record: JournalRecord): Promise<void> {
    await this.journal?.append(record);
  }
}
