import { setMaxListeners } from "node:events";
import { basename, join, resolve } from "node:path";
import { interruption, onAbort } from "../../base/abort.js";
import { describe, LatentkitError } from "../../base/errors.js";
import {
  COUNT,
  checkedLater,
  checkOptions,
  FILE,
  FLAG,
  FUNCTION,
  OBJECT,
  type OptionRules,
  pickOptions,
  rulesWithout,
  SIGNAL,
  TEXT,
} from "../../base/options.js";
import { parseGraph } from "../../graph/parse.js";
import { SURROUNDINGS_RULES } from "../../graph/surroundings.js";
import type { RuntimeOptions } from "../../host/checkpoint/runtime/runtime.js";
import { MODEL_SETTINGS, type ModelSettings } from "../../host/checkpoint/settings.js";
import { refuseReservedKeys } from "../../io/files/save-images.js";
import { printJson } from "../../io/json/lossless.js";
import { chooseDevice } from "../../tensor/device/choice.js";
import { checkGrid, type Grid, type GridOptions, openGrid } from "../contact-sheet/grid.js";
import { withDefaults } from "../defaults.js";
import { EventQueue } from "../event-queue.js";
import { combine } from "../items/combine.js";
import { createGraphKeys } from "../items/graph-keys.js";
import type { BatchItem, ItemValues } from "../items/item.js";
import { openPictures, Pictures } from "../items/pictures.js";
import { keysOf, programItems } from "../items/program-items.js";
import { JOB_OPTION_RULES, type JobOptions, jobOf, refuseUnsendable } from "../job.js";
import { loadsModels } from "../loads-models.js";
import { refuseTargets, refuseUnknown, refuseWrong } from "../refuse-wrong.js";
import { readGraph } from "../source.js";
import { ModelThread } from "../threads/model-thread.js";
import { BatchRun, type BatchRunOptions } from "./batch-run.js";
import type { BatchEvent } from "./events.js";
import { createFaults } from "./faults.js";
import { batchHash } from "./identity.js";
import { checkTemplate, prefixesOf } from "./names.js";
import { createItemRedaction } from "./redaction.js";
import { type BatchSurroundings, type CreateRunner, createRunner } from "./runner.js";
import { sheetItemOf } from "./sheet-item.js";

/** Options of a batch: the job that its items share, live objects around it, and how it goes on. */
export interface BatchOptions extends Omit<JobOptions, "passing" | "output">, BatchSurroundings {
  /** Items that render at once, 1 to 256: worker threads, or turns where the options hold live objects. */
  concurrency?: number;
  /** A file that a killed batch goes on from; none where absent. */
  journal?: string;
  /** Goes on from the journal: what is finished is skipped, what was cut or failed is done again. */
  resume?: boolean;
  /** No item starts after one has failed. */
  failFast?: boolean;
  /** Further tries of an item that fails, 0 to 100. */
  retry?: number;
  /** File part of the images' names, as "{prefix}_{5.seed}_{number}"; "{prefix}_{number}" where absent. */
  name?: string;
  /** A labelled grid of the pictures by the values of two or three keys, written at the end. */
  grid?: GridOptions;
  /**
   * Models of the worker threads, which share one process for their networks: the calls of the first item that is not done
   * go first, and equal prompts are encoded once. The preview host where absent. For turns in this thread: `host`.
   */
  models?: ModelSettings;
  /** Called when a network of `models` begins to load, has been loaded and has been released. Must not throw. */
  onLoad?: NonNullable<RuntimeOptions["onLoad"]>;
  /** Number of items, where the application knows it. */
  total?: number;
  /** Cuts the batch once what runs has come to its end; `signal` cuts it at once. */
  drain?: AbortSignal;
}

const LIVE_RULES = rulesWithout(SURROUNDINGS_RULES, "cache", "diskCache", "outputHandling", "onEvent");

const BATCH_RULES: OptionRules<BatchOptions> = {
  ...rulesWithout(JOB_OPTION_RULES, "passing", "output"),
  ...LIVE_RULES,
  concurrency: checkedLater("a whole number"),
  journal: FILE,
  resume: FLAG,
  failFast: FLAG,
  retry: checkedLater("a whole number"),
  name: TEXT,
  grid: OBJECT,
  total: COUNT,
  drain: SIGNAL,
  models: MODEL_SETTINGS,
  onLoad: FUNCTION,
};

const RETRIES = [0, 100] as const;
const CONCURRENCY = [1, 256] as const;

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
  const isMany =
    typeof items === "object" && items !== null && (Symbol.iterator in items || Symbol.asyncIterator in items);
  if (!isMany)
    throw new LatentkitError("usage.invalid", `items: expected a list of objects, received ${describe(items)}.`);
  checkOptions("batch", options, BATCH_RULES);
  refuseUnsendable(jobOf(options));
  refuseReservedKeys(options.extraPnginfo);
  if (items instanceof Pictures) return refuseCut(pictureBatch(graph, items, options), options);
  const total = options.total ?? (Array.isArray(items) ? items.length : undefined);
  return refuseCut(runBatch(graph, programItems(items), { ...options, total }, undefined, keysOf(items)), options);
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

async function* pictureBatch(
  graph: string | object,
  pictures: Pictures,
  options: BatchOptions,
): AsyncGenerator<BatchEvent, void, undefined> {
  const { inputDir: named, set = {} } = options;
  const source = readGraph(graph, { registry: options.registry, classAliases: options.classAliases });
  const opened = await openPictures(pictures, createGraphKeys(source.graph, options), Object.keys(set), {
    named,
    usual: source.inputDir,
  });
  const { inputDir, keys, fields } = opened;
  yield* runBatch(graph, combine(opened, []).items, { ...options, inputDir }, keys, keys, fields);
}

/**
 * `batch` for items that carry their origin, with checked options. `keys`: keys that each of them sets, `settable`: keys
 * that any of them may set, where they are known; `fields`: fields of the name template that each of them has beside;
 * `runnerOf`: who renders them.
 */
export async function* runBatch(
  graph: string | object,
  items: AsyncIterable<BatchItem>,
  options: BatchOptions = {},
  keys?: readonly string[],
  settable = keys,
  fields: readonly string[] = [],
  runnerOf: CreateRunner = createRunner,
): AsyncGenerator<BatchEvent, void, undefined> {
  const { journal, resume, failFast, retry, name, total, drain, concurrency } = options;
  const run: BatchRunOptions = {
    journal,
    resume: resume ?? false,
    failFast: failFast ?? false,
    partial: options.partial ?? false,
    retry: checkCount("retry", retry ?? 0, RETRIES),
    name: name === undefined ? undefined : checkTemplate(name),
    total,
    drain,
    signal: options.signal,
    outputDir: resolve(options.outputDir ?? "out"),
    clock: options.clock ?? (() => new Date()),
  };
  if (run.resume && journal === undefined) {
    throw new LatentkitError("usage.invalid", "resume: expected a journal to go on from, received none.");
  }
  if (concurrency !== undefined) checkCount("concurrency", concurrency, CONCURRENCY);
  if (options.grid !== undefined) checkGrid(options.grid, settable);
  chooseDevice(options.device);
  const live = pickOptions<BatchSurroundings>(options, LIVE_RULES);
  const models = openModels(options, live);
  const surroundings = withDefaults({ ...live, host: live.host ?? models?.listing });
  const { registry } = surroundings;
  const source = readGraph(graph, { registry, classAliases: options.classAliases, clock: options.clock });
  const { inputDir = source.inputDir, ...rest } = jobOf(options);
  const job = { ...rest, inputDir, outputDir: run.outputDir };
  const parsed = parseGraph(source.graph, job);
  // the nodes of a setup module are known in its threads only
  if (job.setup === undefined) refuseUnknown(parsed, job, registry);
  refuseTargets(parsed, job.targets);
  const faultOf = createFaults(parsed, { ...job, registry }, run.name, keys && [...keys, ...fields]);
  if (job.setup === undefined) refuseWrong(parsed, job, surroundings, settable);
  const stop = new AbortController();
  const abort = () => stop.abort();
  const leave = onAbort(options.signal, abort);
  const { signal } = stop;
  // every item that runs listens
  setMaxListeners(0, signal);
  const runner = runnerOf(printJson(parsed.prompt), job, { ...live, signal }, concurrency, models);
  const queue = new EventQueue<BatchEvent>();
  let work = Promise.resolve();
  try {
    // it starts while the threads do
    if (loadsModels(parsed.prompt, registry)) models?.start();
    await runner.ready(settable);
    const { prompt, notes } = parsed;
    const { set = {}, redact } = job;
    const hash = batchHash(prompt, job, name);
    const redacted = createItemRedaction(prompt, redact);
    const grid = await gridOf(options.grid, run.outputDir, graph, redacted);
    const batchGraph = { prompt, notes, prefixes: prefixesOf(prompt, set), hash, set, faultOf, redacted };
    work = new BatchRun(batchGraph, runner, { ...run, signal }, queue).render(items).finally(() => queue.end());
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

/** Models for worker threads. Throws usage.invalid beside live objects, which cannot be sent to one. */
function openModels({ models, onLoad }: BatchOptions, { signal: _, ...live }: BatchSurroundings) {
  if (models === undefined) return undefined;
  const [first] = Object.keys(live);
  if (first === undefined) return new ModelThread(models, onLoad);
  throw new LatentkitError("usage.invalid", `batch: expected models or ${first}, received both.`);
}

function gridOf(
  options: GridOptions | undefined,
  outputDir: string,
  graph: string | object,
  redacted: (values: ItemValues) => ItemValues,
): Promise<Grid> | undefined {
  if (options === undefined) return undefined;
  const isPath = typeof graph === "string" && !graph.trimStart().startsWith("{");
  return openGrid(
    resolve(options.path ?? join(outputDir, "grid.png")),
    options,
    isPath ? basename(graph) : "",
    redacted,
  );
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

/** Throws value.out-of-range. */
function checkCount(option: "retry" | "concurrency", count: number, [from, to]: readonly [number, number]): number {
  if (Number.isInteger(count) && count >= from && count <= to) return count;
  const expected = `a whole number from ${from} to ${to}`;
  throw new LatentkitError("value.out-of-range", `${option}: expected ${expected}, received ${describe(count)}.`);
}
