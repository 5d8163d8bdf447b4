import { LatentkitError } from "../../base/errors.js";

/** Values of one item, as in `set`: "6.text" sets an input of node 6, others fill the placeholder {{key}} or set the primitive of that title. */
export type ItemValues = Readonly<Record<string, unknown>>;

/** File and line that an item was read from, for messages. */
export interface ItemOrigin {
  /** Path as the user wrote it. */
  readonly file: string;
  /** Line of the item's first character, from 1. */
  readonly line: number;
  /** Number of each key's column, from 1, also by the inputs that it sets, if the file has columns. */
  readonly columns?: Readonly<Record<string, number>>;
}

/** One item of a batch; one with a `fault` could not be read: it counts as failed, and the rest continues. */
export interface BatchItem {
  readonly values: ItemValues;
  readonly origin?: ItemOrigin;
  /** Further fields of the name template, which set nothing in the graph. */
  readonly fields?: ItemValues;
  /** Facts beside the values that make another item: the state of a file that they name, fields of its names. */
  readonly state?: string;
  readonly fault?: LatentkitError;
}

/** Turns the bytes of a file into items, one chunk after the other. */
export interface ItemParser {
  /** Keys that every item sets, if the head of the file names them. */
  readonly keys: readonly string[];
  /** Fields of the name template that every item has beside. */
  readonly fields: readonly string[];
  /** Adds the items that a chunk completes, undefined being the end of the file. Throws if no more can be read. */
  push(chunk: Buffer | undefined, items: BatchItem[]): void | Promise<void>;
}

/** Position in a file of items; `key` names the column. */
export interface FilePosition {
  readonly file: string;
  readonly line: number;
  /** From 1. */
  readonly column?: number;
  readonly key?: string;
}

/** `items.csv, line 7, column 3 (5.seed): <what>`; `what` is a clause or ends with a full stop. */
export function itemError({ file, line, column, key }: FilePosition, what: string, suggestion?: string) {
  const named = key === undefined || key === "" ? "" : ` (${key})`;
  const at = `${file}, line ${line}${column === undefined ? "" : `, column ${column}`}${named}`;
  const sentence = /[.?]$/.test(what) ? what : `${what}.`;
  return new LatentkitError("items.invalid", `${at}: ${sentence}`, { suggestion });
}

/** An item's error with the file and line it was read from, and the column of the input that is wrong. */
export function withOrigin(error: LatentkitError, { origin }: BatchItem): LatentkitError {
  if (origin === undefined) return error;
  const { nodeId, input } = error.details;
  const key = `${nodeId}.${input}`;
  const column = origin.columns !== undefined && Object.hasOwn(origin.columns, key) ? origin.columns[key] : undefined;
  const at = `${origin.file}, line ${origin.line}${column === undefined ? "" : `, column ${column}`}`;
  return new LatentkitError(error.code, `${at}: ${error.message}`, error.details, { cause: error });
}
