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

/** Opens a file of items by the end of its name. Fails with usage.invalid, items.invalid, file.not-found, file.read-failed. */
export async function readItems(path: string, keys: GraphKeys): Promise<ItemFile> {
  const read = READERS[extname(path).toLowerCase()];
  if (read !== undefined) return read(path, keys);
  throw new LatentkitError("usage.invalid", `Items ${path}: expected a file named .csv or .jsonl.`);
}
