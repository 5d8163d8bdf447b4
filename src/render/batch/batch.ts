import { setMaxListeners } from "node:events";
import { join, resolve } from "node:path";
import { interruption, onAbort } from "../../base/abort.js";
import { describe, LatentkitError } from "../../base/errors.js";
import { checkOptions } from "../../base/options.js";
import { refuseReservedKeys } from "../../io/files/save-images.js";
import { printJson } from "../../io/json/lossless.js";
import { type Grid, openGrid } from "../contact-sheet/grid.js";
import { EventQueue } from "../event-queue.js";
import { combine } from "../items/combine.js";
import { createGraphKeys, type GraphKeys } from "../items/graph-keys.js";
import type { BatchItem } from "../items/item.js";
import { createItemKeys } from "../items/item-keys.js";
import { openPictures, Pictures } from "../items/pictures.js";
import { keysOf, programItems } from "../items/program-items.js";
import { jobOf, refuseUnsendable } from "../job.js";
import { loadsModels } from "../loads-models.js";
import { type GraphSource, readGraph } from "../source.js";
import { BATCH_RULES, type BatchOptions } from "./batch-options.js";
import { BatchRun } from "./batch-run.js";
import type { BatchEvent } from "./events.js";
import type { KnownKeys } from "./faults.js";
import { templateKeys } from "./names.js";
import { type PreparedBatch, prepareBatch } from "./prepare.js";
import { type CreateRunner, createRunner } from "./runner.js";
import { sheetItemOf } from "./sheet-item.js";

/**
 * Renders a graph once for each item, several at once, and yields what happens. An item's keys are those of `render`'s
 * `set`. All files of an item are there or none: one that fails or is cut leaves nothing behind. Throws a LatentkitError
 * where graph, options or journal are wrong, before anything is written; an item that fails is reported, and the rest goes
 * on. A batch that `signal` or `drain` has cut yields `batch-done` with the status "interrupted", then throws the signal's
 * reason; so does one whose disk is full or whose folder may not be written any more, with `file.write-failed`. Ending
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

/** Throws usage.invalid where items or options are of wrong types. */
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

/** The events of a batch; throws after the last one where the batch was cut. */
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

/** Items of a batch, and what is known of them before they are read. */
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

/** Renders the items of a batch that is prepared. */
export async function* runPrepared(
  { options, run, graph, graphName, parsed, job, settable, live, surroundings, models }: PreparedBatch,
  items: AsyncIterable<BatchItem>,
  runnerOf: CreateRunner = createRunner,
): AsyncGenerator<BatchEvent, void, undefined> {
  const stop = new AbortController();
  const abort = () => stop.abort();
  const leave = onAbort(options.signal, abort);
  const { signal } = stop;
  // every item that runs listens
  setMaxListeners(0, signal);
  const runner = runnerOf(printJson(parsed.prompt), job, { ...live, signal }, options.concurrency, models);
  const queue = new EventQueue<BatchEvent>();
  let work = Promise.resolve();
  try {
    // it starts while the threads do
    if (loadsModels(parsed.prompt, surroundings.registry)) models?.start();
    await runner.ready(settable);
    const grid = await gridOf({ options, run, graph, graphName });
    work = new BatchRun(graph, runner, { ...run, signal }, queue).render(items).finally(() => queue.end());
    // it may reject while nobody waits for it yet
    work.catch(() => {});
    for (let events = await queue.take(); events !== undefined; events = await queue.take()) {
      yield* grid === undefined ? events : withGrid(events, grid, options.signal);
    }
    await work;
  } finally {
    // a consumer that stops listening stops what runs
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

/** Events of a batch, the last one with the pages of its grid. A batch that was ended at once has none. */
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
