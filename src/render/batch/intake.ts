import { onAbort } from "../../base/abort.js";
import { printJson } from "../../io/json/lossless.js";
import type { BatchItem } from "../items/item.js";
import type { SeedDraw } from "../items/seeds.js";
import type { Entry, Journal } from "./journal/journal.js";

/** An item that was read. */
export interface ReadItem {
  /** Number of the item in its source, from 0. */
  readonly index: number;
  /** The item with its random seeds drawn. */
  readonly item: BatchItem;
  readonly entry: Entry;
  /**
   * Keys whose values differ from the previous item's; all for the first item. What is derived from them is not worth
   * keeping: seeds change with every item while the rest stays.
   */
  readonly passing: readonly string[];
}

/**
 * Reads a batch's items one by one and finds their entries in the journal, until a signal says that no more are needed: a
 * source that is slow or never returns then delays nothing.
 */
export class Intake {
  /** A signal came before the end of the source. */
  isCut = false;
  readonly #source: AsyncIterator<BatchItem>;
  readonly #journal: Journal;
  readonly #seedsOf: SeedDraw["seedsOf"];
  readonly #leaves: (() => void)[];
  #isStopped = false;
  #isOver = false;
  #wake = () => {};
  #index = 0;
  #previous = new Map<string, string>();

  constructor(
    items: AsyncIterable<BatchItem>,
    journal: Journal,
    seedsOf: SeedDraw["seedsOf"],
    signals: readonly (AbortSignal | undefined)[],
  ) {
    this.#source = items[Symbol.asyncIterator]();
    this.#journal = journal;
    this.#seedsOf = seedsOf;
    const stop = () => {
      this.#isStopped = true;
      this.#wake();
    };
    this.#leaves = signals.map((signal) => onAbort(signal, stop));
  }

  /** The next item; undefined at the end, or if a signal came before it. Throws as the source and the journal do. */
  async next(): Promise<ReadItem | undefined> {
    const item = await this.#read();
    if (item === undefined) return undefined;
    const index = this.#index++;
    const changed = this.#changedKeys(item);
    const entry = await this.#journal.find(index, item);
    const values = this.#seedsOf(item.values, { batch: this.#journal.header.id, position: entry.position });
    if (values === item.values) return { index, item, entry, passing: changed };
    const drawn = Object.keys(values).filter((key) => values[key] !== item.values[key]);
    return { index, item: { ...item, values }, entry, passing: [...new Set([...changed, ...drawn])] };
  }

  async #read(): Promise<BatchItem | undefined> {
    try {
      const result = await this.#nextOrStop();
      this.isCut = result === undefined;
      this.#isOver = result?.done === true;
      return result?.done ? undefined : result?.value;
    } catch (error) {
      this.#isOver = true;
      throw error;
    }
  }

  /** Closes the source, unless it is at its end. */
  close(): void {
    for (const leave of this.#leaves) leave();
    // a source that still waits for its next item may never return
    if (!this.#isOver) void Promise.resolve(this.#source.return?.()).catch(() => {});
  }

  /** Undefined if a signal came first. Racing one promise for all items would keep a reaction for each. */
  #nextOrStop(): Promise<IteratorResult<BatchItem> | undefined> {
    return new Promise((resolve, reject) => {
      this.#wake = () => resolve(undefined);
      if (this.#isStopped) this.#wake();
      else this.#source.next().then(resolve, reject);
    });
  }

  #changedKeys({ values }: BatchItem): string[] {
    const previous = this.#previous;
    this.#previous = new Map(Object.entries(values).map(([key, value]) => [key, printJson(value)]));
    return [...this.#previous].filter(([key, text]) => text !== previous.get(key)).map(([key]) => key);
  }
}

/** A counting semaphore, first come first served. */
export class Semaphore {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(readonly count: number) {
    this.#free = count;
  }

  async take(): Promise<void> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  give(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free++;
    else next();
  }

  /** Resolves when no slot is held. */
  async takeAll(): Promise<void> {
    for (let i = 0; i < this.count; i++) await this.take();
  }
}
