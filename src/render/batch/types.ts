import type { LatentkitError } from "../../errors.js";
import type { RenderedFile } from "../files.js";

/** Values of one item, as in `set`: "6.text" sets an input of node 6, any other key fills the placeholder {{key}}. */
export type ItemValues = Readonly<Record<string, unknown>>;

/** Where an item was read, for messages. */
export interface ItemOrigin {
  /** As the user named it. */
  readonly file: string;
  /** Of the item's first character, from 1. */
  readonly line: number;
  /** Number of each key's column, from 1, where the file has columns. */
  readonly columns?: Readonly<Record<string, number>>;
}

/** One item as a source reads it; `fault` where it could not be read: it counts as failed, and the rest goes on. */
export interface BatchItem {
  readonly values: ItemValues;
  readonly origin?: ItemOrigin;
  readonly fault?: LatentkitError;
}

/** How a batch ended: "failed" where an item failed, "interrupted" where it was aborted. */
export type BatchStatus = "success" | "failed" | "interrupted";

interface OfItem {
  /** Number of the item in its source, from 0. */
  readonly index: number;
  readonly values: ItemValues;
}

/** What happens in a batch; all with `at` in ms. */
export type BatchEvent = { readonly at: number } & (
  | {
      readonly type: "batch-start";
      /** Path of the journal, where there is one. */
      readonly journal?: string;
      /** Number of items, where it is known before they are read. */
      readonly total?: number;
      /** Items that the journal has as finished. */
      readonly finished: number;
      readonly concurrency: number;
    }
  | ({ readonly type: "item-start" } & OfItem)
  /** Finished in an earlier run of this batch. */
  | {
      readonly type: "item-skipped";
      readonly index: number;
      /** Number of the item in the journal: another one where items were added before it since. */
      readonly place: number;
    }
  | ({
      readonly type: "item-done";
      readonly files: readonly RenderedFile[];
      /** With `partial`: ids of the outputs that were left out; absent where there are none. */
      readonly leftOut?: readonly string[];
      readonly ms: number;
    } & OfItem)
  | ({
      readonly type: "item-failed";
      readonly error: LatentkitError;
      /** From 1. */
      readonly attempt: number;
      /** It is tried again. */
      readonly willRetry: boolean;
      /** Files that were written before it failed. */
      readonly files: readonly RenderedFile[];
    } & OfItem)
  | { readonly type: "warning"; readonly index?: number; readonly message: string }
  | {
      readonly type: "batch-done";
      /** "failed" where an item failed for good. */
      readonly status: BatchStatus;
      readonly done: number;
      readonly skipped: number;
      readonly failed: number;
      readonly ms: number;
    }
);
