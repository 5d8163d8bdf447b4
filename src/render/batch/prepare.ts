import { createHash } from "node:crypto";
import { resolve } from "node:path";
import { describe, LatentkitError } from "../../base/errors.js";
import { pickOptions } from "../../base/options.js";
import { type Job, jobOf } from "../../graph/job.js";
import { findDefinition, type Graph, parseGraph } from "../../graph/parse.js";
import type { Surroundings } from "../../graph/surroundings.js";
import { withoutUnknown } from "../../graph/topology.js";
import { isPlainObject, printJson } from "../../io/json/lossless.js";
import type { Registry } from "../../nodes/registry.js";
import { chooseDevice } from "../../tensor/device/device.js";
import { checkGrid, type GridOptions } from "../contact-sheet/grid.js";
import { placeholders } from "../fill/keys.js";
import { canonicalValues, inputsOfKey } from "../fill/targets.js";
import { createGraphKeys } from "../items/graph-keys.js";
import type { ItemValues } from "../items/item.js";
import { createSeedDraw } from "../items/seeds.js";
import { REDACTED } from "../redact.js";
import { createUnfilled, refuseTargets, refuseUnknown, refuseWrong, unfilledError } from "../refuse-wrong.js";
import type { GraphSource } from "../source.js";
import { surroundingsOf } from "../surroundings.js";
import { ModelThread } from "../threads/model-thread.js";
import { type BatchOptions, LIVE_RULES } from "./batch-options.js";
import type { BatchGraph, BatchRunOptions } from "./batch-run.js";
import { canonicalTemplate, checkFields, checkTemplate, fillTemplate, namesOf, prefixesOf } from "./names.js";

/** A batch, checked as far as possible without its items. */
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
  readonly surroundings: Surroundings;
  readonly models: ModelThread | undefined;
}

const RETRIES = [0, 100] as const;
const CONCURRENCY = [1, 256] as const;

/** Refuses faults that every item would have. The types of the options have been checked. */
export function prepareBatch(source: GraphSource, options: BatchOptions, known: KnownKeys): PreparedBatch {
  const run = runOf(options);
  const template = options.name === undefined ? undefined : checkTemplate(options.name);
  chooseDevice(options.device);
  const models = openModels(options);
  const surroundings = surroundingsOf({}, { host: models?.listing, ...givenSurroundings(options) });
  const { registry } = surroundings;
  const { classAliases } = options;
  const { inputDir = source.inputDir, set: given, ...rest } = jobOf(options);
  const isSetup = rest.setup !== undefined;
  const whole = parseGraph(source.graph, rest);
  // the nodes of a setup module are known only in its threads
  const parsed = isSetup ? whole : withoutUnknown(whole, registry, rest.targets);
  const { prompt, notes } = parsed;
  const all = canonicalValues(prompt, given ?? {}, (type) => findDefinition(parsed, type, registry));
  const keys = createGraphKeys(prompt, { classAliases, registry });
  const draw = createSeedDraw(keys, all);
  // each item draws its own
  const set = without(all, draw.shared);
  const job: Job = { ...rest, ...(given && { set }), inputDir, outputDir: run.outputDir };
  const settable = known.settable && [...known.settable, ...draw.shared];
  const grid = options.grid && canonicalGrid(options.grid, keys.canonical);
  if (grid !== undefined) checkGrid(grid, settable);
  if (!isSetup) refuseUnknown(parsed, job, registry);
  refuseTargets(parsed, job.targets);
  const name = template && canonicalTemplate(template, keys.canonical);
  const fixed = known.keys && [...known.keys, ...draw.shared];
  const faultOf = createFaults(parsed, job, registry, name, { keys: fixed, fields: known.fields });
  if (!isSetup) refuseWrong(parsed, job, surroundings, settable);
  const prefixes = prefixesOf(prompt, set);
  const graph: BatchGraph = {
    notes,
    prefixes,
    hash: batchHash(prompt, { ...job, ...(given && { set: all }) }, options.name),
    faultOf,
    redacted: createItemRedaction(prompt, job.redact),
    seedsOf: draw.seedsOf,
    nameOf: ({ fields, values }, index, number) =>
      name && fillTemplate(name, { index, number, values: { ...set, ...fields, ...values }, prompt }),
    startsOf: (values, names) => namesOf(prefixes, values, names),
  };
  const graphName = source.name ?? "";
  return { options: { ...options, grid }, run, graph, graphName, parsed, job, settable, surroundings, models };
}

/** Options of a batch's run, independent of its graph. Throws usage.invalid and value.out-of-range. */
function runOf(options: BatchOptions): BatchRunOptions {
  const { journal, resume = false, failFast = false, partial = false, concurrency, total, drain, signal } = options;
  const retry = checkCount("retry", options.retry ?? 0, RETRIES);
  if (resume && journal === undefined) {
    throw new LatentkitError("usage.invalid", "resume: expected a journal to continue from, received none.");
  }
  if (concurrency !== undefined) checkCount("concurrency", concurrency, CONCURRENCY);
  const outputDir = resolve(options.outputDir ?? "out");
  const clock = options.clock ?? (() => new Date());
  return { journal, resume, failFast, partial, retry, total, drain, signal, outputDir, clock };
}

function canonicalGrid(grid: GridOptions, canonical: (key: string) => string): GridOptions {
  const axes = (["rows", "columns", "pages"] as const).filter((axis) => typeof grid[axis] === "string");
  return { ...grid, ...Object.fromEntries(axes.map((axis) => [axis, canonical(grid[axis]!)])) };
}

const without = (values: ItemValues, keys: readonly string[]): ItemValues =>
  keys.length === 0 ? values : Object.fromEntries(Object.entries(values).filter(([key]) => !keys.includes(key)));

/** Live objects among the options of a batch. */
export const givenSurroundings = (options: BatchOptions): Partial<Surroundings> =>
  pickOptions<Partial<Pick<Surroundings, keyof typeof LIVE_RULES>>>(options, LIVE_RULES);

/** Models for worker threads. Throws usage.invalid beside live objects, which cannot be sent to one. */
function openModels(options: BatchOptions) {
  const { models, onLoad, onDevice } = options;
  if (models === undefined) return undefined;
  const [first] = Object.keys(givenSurroundings(options)).filter((key) => key !== "signal");
  if (first === undefined) return new ModelThread(models, { onLoad, onDevice });
  throw new LatentkitError("usage.invalid", `batch: expected models or ${first}, received both.`);
}

/** Throws value.out-of-range. */
function checkCount(option: "retry" | "concurrency", count: number, [from, to]: readonly [number, number]): number {
  if (Number.isInteger(count) && count >= from && count <= to) return count;
  const expected = `a whole number from ${from} to ${to}`;
  throw new LatentkitError("value.out-of-range", `${option}: expected ${expected}, received ${describe(count)}.`);
}

/** Facts about a batch's items that are known before they are read. */
export interface KnownKeys {
  /** Keys that each of them sets, if they are known. */
  readonly keys?: readonly string[];
  /** Keys that any of them may set, if they are known. */
  readonly settable?: readonly string[];
  /** Fields of the name template that items have besides, if they are known. */
  readonly fields?: readonly string[];
}

/**
 * Finds the fault of an item that shows in its keys alone: a placeholder without a value. Fails at once if every item
 * has it, as far as their keys are known: with input.missing, and with usage.invalid for a field of the
 * name template that no item can have.
 */
function createFaults(
  graph: Graph,
  { targets, set = {}, setup }: Job,
  registry: Registry,
  name: string | undefined,
  { keys, fields }: Pick<KnownKeys, "keys" | "fields">,
): (values: ItemValues) => LatentkitError | undefined {
  const shared = Object.keys(set);
  if (name !== undefined && fields !== undefined) {
    const definitionOf = (type: string) => findDefinition(graph, type, registry);
    const allKeys = new Set([...shared, ...(keys ?? []), ...fields]);
    // a setup's nodes may have inputs that are not known here
    const isNode = (key: string) => setup !== undefined && graph.ids.some((id) => key.startsWith(`${id}.`));
    const isInput = (key: string) => !("reason" in inputsOfKey(graph.prompt, key, definitionOf));
    checkFields(name, graph.prompt, (key) => allKeys.has(key) || (keys === undefined && (isNode(key) || isInput(key))));
  }
  const unfilled = createUnfilled(graph, { registry, targets });
  const faultOf = (names: readonly string[]) => {
    const [first] = unfilled(new Set([...shared, ...names]));
    return first && unfilledError(first);
  };
  const common = keys && faultOf(keys);
  if (common !== undefined) throw common;
  // most items have the same keys as the one before
  let last: { readonly keys: string; readonly fault: LatentkitError | undefined } | undefined;
  return (values) => {
    const names = Object.keys(values);
    const joined = names.join("\0");
    if (last?.keys !== joined) last = { keys: joined, fault: faultOf(names) };
    return last.fault;
  };
}

/**
 * Redacts an item's values for journal and contact sheet: those that go into an input which `redact` hides, even if
 * they fill a placeholder in it.
 */
function createItemRedaction(
  prompt: Readonly<Record<string, unknown>>,
  redact: readonly string[] = [],
): (values: ItemValues) => ItemValues {
  if (redact.length === 0) return (values) => values;
  const redacted = new Set(redact);
  const hidden = new Set(redact);
  for (const [nodeId, node] of Object.entries(prompt)) {
    const inputs = isPlainObject(node) && isPlainObject(node.inputs) ? node.inputs : {};
    for (const [input, value] of Object.entries(inputs)) {
      const isHidden = [nodeId, input, `${nodeId}.${input}`].some((key) => redacted.has(key));
      if (isHidden) for (const key of placeholders(value)) hidden.add(key);
    }
  }
  // node ids and input names may hold dots themselves
  const isHidden = (key: string) =>
    hidden.has(key) || redact.some((part) => key.startsWith(`${part}.`) || key.endsWith(`.${part}`));
  return (values) =>
    Object.fromEntries(Object.entries(values).map(([key, value]) => [key, isHidden(key) ? REDACTED : value]));
}

/**
 * Fields of a job that an item's pictures and their names depend on; folders may move, and machines may differ. They are
 * hashed in this order: changing it would invalidate all journals.
 */
const IS_HASHED = {
  set: true,
  targets: true,
  partialExecutionTargets: true,
  classAliases: true,
  metadata: true,
  redact: true,
  extraPnginfo: true,
  setup: true,
  format: true,
  parameters: true,
  outputDir: false,
  inputDir: false,
  cacheDir: false,
  config: false,
  partial: false,
  allowNetwork: false,
  device: false,
  previews: false,
  output: false,
  files: true,
  // every item has its own
  passing: false,
  runId: false,
  validate: false,
} as const satisfies Record<keyof Job, boolean>;

/** Hash of a batch: of its graph, its job and the template of its files' names. @internal */
export function batchHash(prompt: object, job: Job, name: string | undefined): string {
  const hashed = (Object.keys(IS_HASHED) as (keyof Job)[]).filter((key) => IS_HASHED[key]);
  const text = printJson({
    prompt,
    ...Object.fromEntries(hashed.map((key) => [key, job[key]])),
    setup: job.setup?.href,
    files: hashesOf(job.files),
    name,
  });
  return `sha256:${sha256(text)}`;
}

const hashesOf = (files: Job["files"]) =>
  files && Object.fromEntries(Object.entries(files).map(([name, bytes]) => [name, sha256(bytes)]));

const sha256 = (content: string | Uint8Array): string => createHash("sha256").update(content).digest("hex");
