import type { LatentkitError } from "../../base/errors.js";
import type { SheetItem } from "../contact-sheet/contact-sheet.js";
import type { ItemValues } from "../items/item.js";
import type { RenderedFile } from "../result.js";

/**
 * How a batch ended: "failed" if an item failed, "interrupted" if a signal or a full disk stopped it, so that items
 * are missing.
 */
export type BatchStatus = "success" | "failed" | "interrupted";

interface AboutItem {
  /** Number of the item in its source, from 0. */
  readonly index: number;
  readonly values: ItemValues;
}

/** An event of a batch; `at` is its time in ms. */
export type BatchEvent = { readonly at: number } & (
  | {
      readonly type: "batch-start";
      /** Path of the journal, if there is one. */
      readonly journal?: string;
      /** Number of items, if it is known before they are read. */
      readonly total?: number;
      /** Items that the journal lists as finished. */
      readonly finished: number;
      readonly concurrency: number;
    }
  | ({ readonly type: "item-start" } & AboutItem)
  /** Finished in an earlier run of this batch. */
  | ({
      readonly type: "item-skipped";
      /** Number of the item in the journal; not its index if items were inserted before it since. */
      readonly position: number;
      /** Files that the earlier run wrote for it. */
      readonly files: readonly RenderedFile[];
    } & AboutItem)
  | ({
      readonly type: "item-done";
      readonly files: readonly RenderedFile[];
      /** With `partial`: ids of the outputs that were left out; absent if there are none. */
      readonly leftOut?: readonly string[];
      readonly ms: number;
    } & AboutItem)
  | ({
      readonly type: "item-failed";
      readonly error: LatentkitError;
      /** From 1. */
      readonly attempt: number;
      /** Whether it is retried. */
      readonly willRetry: boolean;
      /** Files written before it failed. */
      readonly files: readonly RenderedFile[];
    } & AboutItem)
  | { readonly type: "warning"; readonly index?: number; readonly message: string }
  | {
      readonly type: "batch-done";
      /** "failed" if an item failed for good. */
      readonly status: BatchStatus;
      readonly done: number;
      readonly skipped: number;
      readonly failed: number;
      readonly ms: number;
      /** Why no more files could be written, if that stopped the batch. */
      readonly error?: LatentkitError;
      /** Paths of the grid's pages, if there is one. */
      readonly grid?: readonly string[];
    }
);

const PICTURE = /\.(png|webp|jpg|avif)$/i;

/** Result of an item as contact sheets and grids show it; undefined for an event that does not end an item. */
export function sheetItemOf(event: BatchEvent): SheetItem | undefined {
  if (event.type === "item-done" || event.type === "item-skipped") {
    const pictures = event.files.map(({ path }) => path).filter((path) => PICTURE.test(path));
    return { index: event.index, values: event.values, pictures };
  }
  if (event.type !== "item-failed" || event.willRetry) return undefined;
  return { index: event.index, values: event.values, pictures: [], isFailed: true };
}
