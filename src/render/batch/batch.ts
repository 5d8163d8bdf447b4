import { setMaxListeners } from "node:events";
import { join, resolve } from "node:path";
import { interruption, onAbort } from "../../base/abort.js";
import { describe, LatentkitError, messageOf } from "../../base/errors.js";
import { checkOptions } from "../../base/options.js";
import { jobOf } from "../../graph/job.js";
import { refuseReservedKeys } from "../../io/files/save-images.js";
import { isPlainObject, printJson } from "../../io/json/lossless.js";
import { type Grid, openGrid } from "../contact-sheet/grid.js";
import { EventQueue } from "../event-queue.js";
import { combine } from "../items/axes.js";
import { createGraphKeys, createItemKeys, type GraphKeys, type ItemKeys, withFields } from "../items/graph-keys.js";
import type { BatchItem, ItemValues } from "../items/item.js";
import { openPictures, Pictures } from "../items/pictures.js";
import { refuseLoss, refuseUnsendable } from "../job.js";
import { type GraphSource, readGraph } from "../source.js";
import { loadsModels } from "../surroundings.js";
import { BATCH_RULES, type BatchOptions } from "./batch-options.js";
import { BatchRun } from "./batch-run.js";
import { type BatchEvent, sheetItemOf } from "./events.js";
import { templateKeys } from "./names.js";
import { givenSurroundings, type KnownKeys, type PreparedBatch, prepareBatch } from "./prepare.js";
import { type CreateRunner, createRunner } from "./runner.js";

/**
 * Renders a graph once for each item, several at once, and yields what happens. An item's keys are those of `render`'s
 * `set`. All files of an item are written, or none: an item that fails or is interrupted leaves nothing behind. Throws a
 * LatentkitError if graph, options or journal are wrong, before anything is written; a failed item is reported, and the rest
 * continues. A batch that `signal` or `drain` has stopped yields `batch-done` with the status "interrupted", then throws the
 * signal's reason; one whose disk is full or whose folder can no longer be written throws `file.write-failed`. Ending
 * the iteration early ends the batch at once.
 */
export function batch(
  graph: string | object,
  items: Iterable<object> | AsyncIterable<object>,
  options: BatchOptions = {},
): AsyncGenerator<BatchEvent, void, undefined> {
  checkBatchCall("batch", items, options);
  const opened = async function* () {
    const read = readGraph(graph, options);
    const { source, more } = await openSource(read, items, options);
    yield* runPrepared(prepareBatch(read, { ...options, ...more }, source), source.items);
  };
  return refuseCut(opened(), options);
}

/** Throws usage.invalid if items or options are of wrong types. */
export function checkBatchCall(
  name: string,
  items: Iterable<object> | AsyncIterable<object>,
  options: BatchOptions,
): void {
  const isMany =
    typeof items === "object" && items !== null && (Symbol.iterator in items || Symbol.asyncIterator in items);
  if (!isMany)
    throw new LatentkitError("usage.invalid", `items: expected a list of objects, received ${describe(items)}.`);
  checkOptions(name, options, BATCH_RULES);
  refuseUnsendable(jobOf(options));
  refuseReservedKeys(options.extraPnginfo);
}

/** The events of a batch; throws after the last one if the batch was interrupted. */
async function* refuseCut(
  events: AsyncGenerator<BatchEvent, void, undefined>,
  { signal, drain }: Pick<BatchOptions, "signal" | "drain">,
): AsyncGenerator<BatchEvent, void, undefined> {
  let isCut = false;
  let lost: LatentkitError | undefined;
  for await (const event of events) {
    if (event.type === "batch-done") [isCut, lost] = [event.status === "interrupted", event.error];
    yield event;
  }
  if (lost !== undefined) throw lost;
  if (isCut) throw interruption(signal?.aborted ? signal : drain, "The batch was interrupted.");
}

/** Items of a batch, and what is known about them before they are read. */
export interface BatchSource extends KnownKeys {
  readonly items: AsyncIterable<BatchItem>;
}

/** The items of a program as a batch takes them, and options that follow from them. */
export async function openSource(
  { graph, inputDir }: GraphSource,
  items: Iterable<object> | AsyncIterable<object>,
  options: BatchOptions,
): Promise<{ readonly source: BatchSource; readonly more: Pick<BatchOptions, "total" | "inputDir"> }> {
  const keys = createGraphKeys(graph, options);
  if (items instanceof Pictures) return openPictureSource(items, keys, inputDir, options);
  const itemKeys = createItemKeys(keys, { named: templateKeys(options.name), extraColumns: options.extraColumns });
  const known = keysOf(items, itemKeys);
  const total = options.total ?? (Array.isArray(items) ? items.length : undefined);
  const own = { settable: known?.values, fields: known?.fields };
  return { source: { items: programItems(items, itemKeys), ...own }, more: { total } };
}

async function openPictureSource(
  pictures: Pictures,
  graphKeys: GraphKeys,
  usual: string,
  { inputDir: named, set = {} }: BatchOptions,
) {
  const taken = Object.keys(set).map(graphKeys.canonical);
  const opened = await openPictures(pictures, graphKeys, taken, { named, usual });
  const { inputDir, keys, fields } = opened;
  return { source: { items: combine(opened, []).items, keys, settable: keys, fields }, more: { inputDir } };
}

/** Renders the items of a prepared batch. */
export async function* runPrepared(
  { options, run, graph, graphName, parsed, job, settable, surroundings, models }: PreparedBatch,
  items: AsyncIterable<BatchItem>,
  runnerOf: CreateRunner = createRunner,
): AsyncGenerator<BatchEvent, void, undefined> {
  const stop = new AbortController();
  const abort = () => stop.abort();
  const leave = onAbort(options.signal, abort);
  const { signal } = stop;
  // every running item listens
  setMaxListeners(0, signal);
  const runner = runnerOf(
    printJson(parsed.prompt),
    job,
    { ...givenSurroundings(options), signal },
    options.concurrency,
    models,
  );
  const queue = new EventQueue<BatchEvent>();
  let work = Promise.resolve();
  try {
    // it starts while the threads do
    if (loadsModels(parsed.prompt, surroundings.registry)) models?.start();
    await runner.ready(settable);
    const grid = await gridOf({ options, run, graph, graphName });
    work = new BatchRun(graph, runner, { ...run, signal }, queue).render(items).finally(() => queue.end());
    // it may reject before it is awaited
    work.catch(() => {});
    for (let events = await queue.take(); events !== undefined; events = await queue.take()) {
      yield* grid === undefined ? events : withGrid(events, grid, options.signal);
    }
    await work;
  } finally {
    // a consumer that stops listening stops the running items
    abort();
    leave();
    queue.abandon();
    await work.catch(() => {});
    await runner.close();
    await models?.close();
  }
}

function gridOf({
  options: { grid },
  run,
  graph,
  graphName,
}: Pick<PreparedBatch, "options" | "run" | "graph" | "graphName">): Promise<Grid> | undefined {
  if (grid === undefined) return undefined;
  return openGrid(resolve(grid.path ?? join(run.outputDir, "grid.png")), grid, graphName, graph.redacted);
}

/** Events of a batch, the last one with the pages of its grid, unless the batch was ended at once. */
async function* withGrid(events: readonly BatchEvent[], grid: Grid, signal: AbortSignal | undefined) {
  for (const event of events) {
    const item = sheetItemOf(event);
    if (item !== undefined) grid.add(item);
    if (event.type !== "batch-done" || signal?.aborted === true || event.error !== undefined) {
      yield event;
      continue;
    }
    let failure: { error: unknown } | undefined;
    const pages = await grid.finish().catch((error: unknown) => {
      failure = { error };
      return undefined;
    });
    yield pages === undefined ? event : { ...event, grid: pages };
    if (failure !== undefined) throw failure.error;
  }
}

/** Items of a program as a batch takes them: one that is not an object of plain values has a fault, the rest continues. */
async function* programItems(
  items: Iterable<object> | AsyncIterable<object>,
  keys: ItemKeys,
): AsyncGenerator<BatchItem, void, undefined> {
  let index = 0;
  for await (const item of items) {
    const name = `Item ${index++}`;
    try {
      yield sorted(readValues(item, name), keys, name);
    } catch (error) {
      // an error that a consumer throws into this generator is not the item's
      if (!(error instanceof LatentkitError)) throw error;
      yield { values: {}, fault: error };
    }
  }
}

/**
 * Keys that some of the items have, those of values and of fields; undefined if they cannot be known before the items
 * are read.
 */
function keysOf(
  items: Iterable<object> | AsyncIterable<object>,
  itemKeys: ItemKeys,
): { readonly values: string[]; readonly fields: string[] } | undefined {
  if (!Array.isArray(items)) return undefined;
  const names = new Set<string>();
  for (const item of items as unknown[]) {
    // anything but an object of values fails when it is read
    if (isPlainObject(item)) for (const key of Object.keys(item)) names.add(key);
    else if (typeof item === "object" && item !== null) return undefined;
  }
  const keys = { values: [] as string[], fields: [] as string[] };
  for (const name of names) {
    const role = itemKeys.roleOf(name);
    if ("reason" in role) keys.values.push(name);
    else if (role.role === "value") keys.values.push(role.key);
    else if (role.role === "field") keys.fields.push(name);
  }
  return keys;
}

/** Values and fields of an item. An unknown key stays, and fails the item when the graph is filled. */
function sorted(given: ItemValues, keys: ItemKeys, name: string): BatchItem {
  const values: Record<string, unknown> = {};
  const fields: Record<string, unknown> = {};
  for (const key of Object.keys(given)) {
    const role = keys.roleOf(key);
    if ("role" in role && role.role !== "value") {
      if (role.role === "field") fields[key] = given[key];
      continue;
    }
    const own = "role" in role ? role.key : key;
    if (Object.hasOwn(values, own)) {
      throw new LatentkitError("items.invalid", `${name}, ${key}: another key of the item also sets ${own}.`);
    }
    values[own] = given[key];
  }
  return { values, ...withFields(fields) };
}

/** Copies an item's values: a getter is called once. */
function readValues(item: unknown, name: string): ItemValues {
  if (typeof item !== "object" || item === null || Array.isArray(item) || item instanceof Map) {
    throw new LatentkitError("items.invalid", `${name}: expected an object of values, received ${describe(item)}.`);
  }
  const values: Record<string, unknown> = {};
  for (const key of Object.keys(item)) {
    const value = readValue(item as Record<string, unknown>, key, name);
    refuseLoss(name, key, value, "items.invalid", { digits: true });
    values[key] = value;
  }
  return values;
}

function readValue(item: Record<string, unknown>, key: string, name: string): unknown {
  try {
    return item[key];
  } catch (cause) {
    const message = `${name}, ${key}: reading the value failed: ${messageOf(cause)}`;
    throw new LatentkitError("items.invalid", message, {}, { cause });
  }
}
