import { setMaxListeners } from "node:events";
import { resolve } from "node:path";
import { onAbort } from "../../abort.js";
import { describe, LatentkitError } from "../../errors.js";
import { parseGraph } from "../../graph/parse.js";
import { printJson } from "../../io/json-lossless.js";
import { refuseReservedKeys } from "../../io/save-images.js";
import { checkOptions } from "../../options.js";
import { chooseDevice } from "../../tensor/device-choice.js";
import { BATCH_RULES } from "../check-options.js";
import { defaultHost, defaultRegistry } from "../defaults.js";
import { refuseTargets, refuseUnknown, refuseWrong } from "../refuse-wrong.js";
import { readGraph } from "../source.js";
import { BatchQueue } from "./batch-queue.js";
import { BatchRun, type BatchRunOptions } from "./batch-run.js";
import { createFaults } from "./faults.js";
import { createShown } from "./hidden.js";
import { batchHash } from "./identity.js";
import { itemsOf, keysOf, refuseUnsendable } from "./items-of.js";
import { checkTemplate, prefixesOf } from "./names.js";
import { createRunner, type RunnerOptions } from "./runner.js";
import type { BatchEvent, BatchItem } from "./types.js";

/** Options of `batch`: those of `render`, and how many items run, what is kept and what happens after a failure. */
export interface BatchOptions extends RunnerOptions {
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
  /** Number of items, where it is known. */
  total?: number;
  /** Ends the batch once what runs has come to its end; `signal` ends it at once. */
  drain?: AbortSignal;
}

const RETRIES = [0, 100] as const;
const CONCURRENCY = [1, 256] as const;

/**
 * Renders a graph once for each item, several at once, and tells what happens. An item's keys are those of `render`'s
 * `set`. All files of an item are there or none: one that fails or is cut leaves nothing behind. Throws a LatentkitError
 * where graph, options or journal are wrong, before anything is written, and where the journal can no longer be
 * written; an item that fails is told, and the rest goes on. Ending the iteration early ends the batch at once.
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
  refuseUnsendable(options);
  refuseReservedKeys(options.extraPnginfo);
  const total = options.total ?? (Array.isArray(items) ? items.length : undefined);
  return runBatch(graph, itemsOf(items), { ...options, total }, undefined, keysOf(items));
}

/**
 * The same for items that tell where they were read; `keys`: what each of them sets, `settable`: what any of them may
 * set, where that is known.
 */
export async function* runBatch(
  graph: string | object,
  items: AsyncIterable<BatchItem>,
  options: BatchOptions = {},
  keys?: readonly string[],
  settable = keys,
): AsyncGenerator<BatchEvent, void, undefined> {
  const { journal, resume, failFast, retry, name, total, drain, ...rest } = options;
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
  if (options.concurrency !== undefined) checkCount("concurrency", options.concurrency, CONCURRENCY);
  chooseDevice(options.device);
  const source = readGraph(graph);
  const parsed = parseGraph(source.graph, options);
  const { registry = defaultRegistry, set = {} } = options;
  // the nodes of a setup module are known in its threads only
  if (options.setup === undefined) refuseUnknown(parsed, { ...options, registry });
  refuseTargets(parsed, options.targets);
  const faultOf = createFaults(parsed, { ...options, registry }, run.name, keys);
  const inputDir = options.inputDir ?? source.inputDir;
  if (options.setup === undefined) {
    refuseWrong(parsed, { ...options, registry, host: options.host ?? defaultHost, inputDir, keys: settable });
  }
  const stop = new AbortController();
  const abort = () => stop.abort();
  const leave = onAbort(options.signal, abort);
  const { signal } = stop;
  // every item that runs listens
  setMaxListeners(0, signal);
  const runner = createRunner(printJson(parsed.prompt), { ...rest, outputDir: run.outputDir, inputDir, signal });
  const queue = new BatchQueue<BatchEvent>();
  try {
    await runner.ready(settable);
    const { prompt, note } = parsed;
    const shown = createShown(prompt, options.redact);
    const what = {
      prompt,
      note,
      prefixes: prefixesOf(prompt, set),
      hash: batchHash(prompt, options),
      set,
      faultOf,
      shown,
    };
    const whole = new BatchRun(what, runner, { ...run, signal }, queue);
    yield* queue.follow(whole.render(items));
  } finally {
    // a consumer that stops listening stops what runs
    abort();
    leave();
    await queue.settled;
    await runner.close();
  }
}

/** Throws value.out-of-range. */
function checkCount(option: "retry" | "concurrency", count: number, [from, to]: readonly [number, number]): number {
  if (Number.isInteger(count) && count >= from && count <= to) return count;
  const expected = `a whole number from ${from} to ${to}`;
  throw new LatentkitError("value.out-of-range", `${option}: expected ${expected}, received ${describe(count)}.`);
}
