import type { LatentkitError } from "../../base/errors.js";
import { YieldTimer } from "../../base/yield-timer.js";
import type { BatchItem } from "../items/item.js";
import { readGraph } from "../source.js";
import { checkBatchCall, openSource } from "./batch.js";
import type { BatchOptions } from "./batch-options.js";
import { createItemCheck, type ItemCheck } from "./item-check.js";
import { firstNumber } from "./names.js";
import { type PreparedBatch, prepareBatch } from "./prepare.js";

/** An item that cannot be rendered. */
export interface ItemFault {
  /** Number of the item in its source, from 0. */
  readonly index: number;
  readonly error: LatentkitError;
}

/** Facts of a batch that is not rendered. */
export interface BatchCheck {
  /** Number of items, those with a fault too. */
  readonly items: number;
  /** Number of files that the items write at least: a node may save several pictures. */
  readonly files: number;
  /** Beginnings of the first files' names in the output folder, as a new batch writes them. */
  readonly names: readonly string[];
  readonly faults: readonly ItemFault[];
}

/** Names that are told. */
const NAMES = 3;

/**
 * Reads the items of a batch and checks each as far as it can be without rendering: its keys, its values by the nodes that
 * take them, its name. Writes nothing. Throws as `batch` for what is wrong with every item. The nodes of a setup module are
 * not asked.
 */
export async function checkBatch(
  graph: string | object,
  items: Iterable<object> | AsyncIterable<object>,
  options: BatchOptions = {},
): Promise<BatchCheck> {
  checkBatchCall("checkBatch", items, options);
  const read = readGraph(graph, options);
  const { source, more } = await openSource(read, items, options);
  const prepared = prepareBatch(read, { ...options, ...more }, source);
  const faults: ItemFault[] = [];
  const { signal } = options;
  const check = createItemCheck(prepared);
  const counts = await checkItems(prepared, check, source.items, { onFault: (fault) => faults.push(fault), signal });
  return { ...counts, faults };
}

/** Listener to a check of items. */
export interface CheckListener {
  onFault(fault: ItemFault): void;
  /** Called now and then with the number of items so far. */
  onCount?(items: number): void;
  readonly signal?: AbortSignal;
}

/** Checks each item. Rejects with the reason of the signal. */
export async function checkItems(
  { run, graph }: PreparedBatch,
  check: ItemCheck,
  items: AsyncIterable<BatchItem>,
  { onFault, onCount, signal }: CheckListener,
): Promise<Omit<BatchCheck, "faults">> {
  const timer = new YieldTimer();
  const first = await firstNumber(run.outputDir, graph.prefixes);
  const names: string[] = [];
  let count = 0;
  let perItem = 0;
  for await (const item of items) {
    signal?.throwIfAborted();
    const error = check.faultOf(item);
    if (error !== undefined) onFault({ index: count, error });
    else if (names.length < NAMES) {
      const own = check.namesOf(item, count, first + count);
      perItem = Math.max(perItem, own.length);
      names.push(...own);
    }
    count++;
    if (!timer.isDue) continue;
    onCount?.(count);
    await timer.yield();
  }
  return { items: count, files: count * perItem, names: names.slice(0, NAMES) };
}
