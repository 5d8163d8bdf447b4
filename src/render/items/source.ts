import { extname } from "node:path";
import { LatentkitError } from "../../errors.js";
import type { BatchItem } from "../batch/types.js";
import { readCsv } from "./csv.js";
import type { GraphKeys } from "./graph-keys.js";
import { readJsonl } from "./jsonl.js";

/** A file of items, opened: its head has been checked, its items are read as they are asked for. */
export interface ItemFile {
  /** Keys that every item sets, where the file says so before its items. */
  readonly keys: readonly string[];
  readonly items: AsyncIterable<BatchItem>;
}

const READERS: Readonly<Record<string, (path: string, keys: GraphKeys) => Promise<ItemFile>>> = {
  ".csv": readCsv,
  ".jsonl": readJsonl,
  ".ndjson": readJsonl,
};

/**
 * Opens a file of items by the end of its name; one without an item is refused. Fails with usage.invalid, items.invalid,
 * file.not-found and file.read-failed.
 */
export async function readItems(path: string, keys: GraphKeys): Promise<ItemFile> {
  const read = READERS[extname(path).toLowerCase()];
  if (read === undefined) {
    throw new LatentkitError("usage.invalid", `Items ${path}: expected a file named .csv or .jsonl.`);
  }
  const { keys: columns, items } = await read(path, keys);
  const iterator = items[Symbol.asyncIterator]();
  const first = await iterator.next();
  // an export that failed leaves such a file; a batch of nothing would look like success
  if (first.done) throw new LatentkitError("items.invalid", `${path}: expected at least one item, received none.`);
  return { keys: columns, items: rejoin(first.value, iterator) };
}

async function* rejoin(first: BatchItem, rest: AsyncIterator<BatchItem>): AsyncGenerator<BatchItem, void, undefined> {
  try {
    yield first;
    for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value;
  } finally {
    // whoever stops reading closes the file
    await rest.return?.();
  }
}
