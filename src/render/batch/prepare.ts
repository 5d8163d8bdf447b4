import { resolve } from "node:path";
import { describe, LatentkitError } from "../../base/errors.js";
import { pickOptions } from "../../base/options.js";
import { findDefinition, type Graph, parseGraph } from "../../graph/parse.js";
import { chooseDevice } from "../../tensor/device/choice.js";
import { checkGrid, type GridOptions } from "../contact-sheet/grid.js";
import { type RenderSurroundings, withDefaults } from "../defaults.js";
import { canonicalValues } from "../fill/fill.js";
import { createGraphKeys } from "../items/graph-keys.js";
import type { ItemValues } from "../items/item.js";
import { createSeedDraw } from "../items/random-seeds.js";
import { type Job, jobOf } from "../job.js";
import { refuseTargets, refuseUnknown, refuseWrong } from "../refuse-wrong.js";
import type { GraphSource } from "../source.js";
import { ModelThread } from "../threads/model-thread.js";
import { type BatchOptions, LIVE_RULES } from "./batch-options.js";
import type { BatchGraph, BatchRunOptions } from "./batch-run.js";
import { createFaults, type KnownKeys } from "./faults.js";
import { batchHash } from "./identity.js";
import { canonicalTemplate, checkTemplate, prefixesOf } from "./names.js";
import { createItemRedaction } from "./redaction.js";
import type { BatchSurroundings } from "./runner.js";

/** A batch that is checked as far as it can be without its items. */
export interface PreparedBatch {
  readonly options: BatchOptions;
  readonly run: BatchRunOptions;
  readonly graph: BatchGraph;
  /** The name of the graph's file; "" for any other graph. */
  readonly graphName: string;
  readonly parsed: Graph;
  /** Job that its items share, with absolute folders. */
  readonly job: Job;
  readonly settable: readonly string[] | undefined;
  readonly live: BatchSurroundings;
  readonly surroundings: RenderSurroundings;
  readonly models: ModelThread | undefined;
}

const RETRIES = [0, 100] as const;
const CONCURRENCY = [1, 256] as const;

/** Refuses all that is wrong for every item of a graph that was read. The options are checked for their types. */
export function prepareBatch(source: GraphSource, options: BatchOptions, known: KnownKeys): PreparedBatch {
  const { journal, resume, failFast, retry, total, drain, concurrency, signal } = options;
  const run: BatchRunOptions = {
    journal,
    resume: resume ?? false,
    failFast: failFast ?? false,
    partial: options.partial ?? false,
    retry: checkCount("retry", retry ?? 0, RETRIES),
    total,
    drain,
    signal,
    outputDir: resolve(options.outputDir ?? "out"),
    clock: options.clock ?? (() => new Date()),
  };
  const template = options.name === undefined ? undefined : checkTemplate(options.name);
  if (run.resume && journal === undefined) {
    throw new LatentkitError("usage.invalid", "resume: expected a journal to go on from, received none.");
  }
  if (concurrency !== undefined) checkCount("concurrency", concurrency, CONCURRENCY);
  chooseDevice(options.device);
  const live = pickOptions<BatchSurroundings>(options, LIVE_RULES);
  const models = openModels(options, live);
  const surroundings = withDefaults({ ...live, host: live.host ?? models?.listing });
  const { registry } = surroundings;
  const { classAliases } = options;
  const { inputDir = source.inputDir, set: given, ...rest } = jobOf(options);
  const parsed = parseGraph(source.graph, rest);
  const { prompt, notes } = parsed;
  const all = canonicalValues(prompt, given ?? {}, (type) => findDefinition(parsed, type, registry));
  const keys = createGraphKeys(prompt, { classAliases, registry });
  const draw = createSeedDraw(keys, all);
  // what is drawn is each item's own
  const set = without(all, draw.shared);
  const job: Job = { ...rest, ...(given && { set }), inputDir, outputDir: run.outputDir };
  const settable = known.settable && [...known.settable, ...draw.shared];
  const grid = options.grid && canonicalGrid(options.grid, keys.canonical);
  if (grid !== undefined) checkGrid(grid, settable);
  const isSetup = job.setup !== undefined;
  // the nodes of a setup module are known in its threads only
  if (!isSetup) refuseUnknown(parsed, job, registry);
  refuseTargets(parsed, job.targets);
  const name = template && canonicalTemplate(template, keys.canonical);
  const knownHere = { keys: known.keys && [...known.keys, ...draw.shared], fields: known.fields };
  const faultOf = createFaults(parsed, { ...job, registry }, name, knownHere);
  if (!isSetup) refuseWrong(parsed, job, surroundings, settable);
  const shared = {
    prompt,
    notes,
    prefixes: prefixesOf(prompt, set),
    hash: batchHash(prompt, { ...job, ...(given && { set: all }) }, options.name),
    set,
    faultOf,
    redacted: createItemRedaction(prompt, job.redact),
    seedsOf: draw.seedsOf,
  };
  const own = { ...options, grid };
  return {
    options: own,
    run: { ...run, name },
    graph: shared,
    graphName: source.name ?? "",
    parsed,
    job,
    settable,
    live,
    surroundings,
    models,
  };
}

function canonicalGrid(grid: GridOptions, canonical: (key: string) => string): GridOptions {
  const axes = (["rows", "columns", "pages"] as const).filter((axis) => typeof grid[axis] === "string");
  return { ...grid, ...Object.fromEntries(axes.map((axis) => [axis, canonical(grid[axis]!)])) };
}

const without = (values: ItemValues, keys: readonly string[]): ItemValues =>
  keys.length === 0 ? values : Object.fromEntries(Object.entries(values).filter(([key]) => !keys.includes(key)));

/** Models for worker threads. Throws usage.invalid beside live objects, which cannot be sent to one. */
function openModels({ models, onLoad, onDevice }: BatchOptions, { signal: _, ...live }: BatchSurroundings) {
  if (models === undefined) return undefined;
  const [first] = Object.keys(live);
  if (first === undefined) return new ModelThread(models, { onLoad, onDevice });
  throw new LatentkitError("usage.invalid", `batch: expected models or ${first}, received both.`);
}

/** Throws value.out-of-range. */
function checkCount(option: "retry" | "concurrency", count: number, [from, to]: readonly [number, number]): number {
  if (Number.isInteger(count) && count >= from && count <= to) return count;
  const expected = `a whole number from ${from} to ${to}`;
  throw new LatentkitError("value.out-of-range", `${option}: expected ${expected}, received ${describe(count)}.`);
}
