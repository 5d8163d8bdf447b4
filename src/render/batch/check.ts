import { resolve } from "node:path";
import { YieldTimer } from "../../base/abort.js";
import { LatentkitError } from "../../base/errors.js";
import { findDefinition, findDefinitions, parseGraph, parseGraphText } from "../../graph/parse.js";
import { type CheckedGraph, checkGraph, validationError } from "../../graph/validate.js";
import { printJson } from "../../io/json/lossless.js";
import { fillGraph } from "../fill/fill.js";
import { inputsOfKey } from "../fill/targets.js";
import { type BatchItem, type ItemValues, withOrigin } from "../items/item.js";
import { frozenGraph, readGraph } from "../source.js";
import { checkBatchCall, openSource } from "./batch.js";
import type { BatchOptions } from "./batch-options.js";
import { firstNumber } from "./names.js";
import { type PreparedBatch, prepareBatch } from "./prepare.js";

/** An item that cannot be rendered. */
export interface ItemFault {
  /** Number of the item in its source, from 0. */
  readonly index: number;
  readonly error: LatentkitError;
}

/** Facts of a batch that is only checked. */
export interface BatchCheck {
  /** Number of items, including those with a fault. */
  readonly items: number;
  /** Fewest files that the items write: a node may save several pictures. */
  readonly files: number;
  /** Beginnings of the first files' names in the output folder, as a new batch writes them. */
  readonly names: readonly string[];
  readonly faults: readonly ItemFault[];
}

/** Number of names that are reported. */
const NAMES = 3;

/**
 * Reads the items of a batch and checks each as far as it can be without rendering: its keys, its values by the nodes that
 * take them, its name. Writes nothing. Throws as `batch` for what is wrong with every item. The nodes of a setup module are
 * not called.
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
  let counted = NO_ITEMS;
  const checking = checkItems(prepared, createItemCheck(prepared), source.items, options.signal);
  for await (const { fault, ...counts } of checking) {
    counted = counts;
    if (fault !== undefined) faults.push(fault);
  }
  return { ...counted, faults };
}

type ItemCounts = Omit<BatchCheck, "faults">;

export const NO_ITEMS: ItemCounts = { items: 0, files: 0, names: [] };

/**
 * Checks each item. Yields the counts so far: for each item with a fault, now and then, and at the end. Throws the reason of
 * the signal.
 */
export async function* checkItems(
  { run, graph }: PreparedBatch,
  check: ItemCheck,
  items: AsyncIterable<BatchItem>,
  signal: AbortSignal | undefined,
): AsyncGenerator<ItemCounts & { readonly fault?: ItemFault }, void, undefined> {
  const timer = new YieldTimer();
  const first = await firstNumber(run.outputDir, graph.prefixes);
  const names: string[] = [];
  let count = 0;
  let perItem = 0;
  const soFar = (): ItemCounts => ({ items: count, files: count * perItem, names: names.slice(0, NAMES) });
  for await (const item of items) {
    signal?.throwIfAborted();
    const index = count++;
    const error = check.faultOf(item);
    if (error !== undefined) yield { ...soFar(), fault: { index, error } };
    else if (names.length < NAMES) {
      const own = check.namesOf(item, index, first + index);
      perItem = Math.max(perItem, own.length);
      names.push(...own);
    }
    if (!timer.isDue) continue;
    yield soFar();
    await timer.yield();
  }
  yield soFar();
}

/** Looks at items of a batch without rendering them. */
export interface ItemCheck {
  /** Why an item cannot be rendered; undefined if no fault shows before its nodes run. */
  faultOf(item: BatchItem): LatentkitError | undefined;
  /** Why an input refuses a value regardless of the others; undefined if it does not. */
  refusalOf(key: string, value: unknown): LatentkitError | undefined;
  /** Beginnings of the names of an item's files, below the output folder; `number`: see `ItemNames`. */
  namesOf(item: BatchItem, position: number, number: number): string[];
}

/** Stands for seeds that have not been drawn yet. */
const ANY_SEED = { batch: "", position: 0 };

// decisions: A file of items is read twice
/**
 * Checks items with the nodes and the host of this thread. Values are not checked if others render: threads with a setup
 * module, or another process (`isElsewhere`).
 */
export function createItemCheck(
  { graph, parsed, job, surroundings }: PreparedBatch,
  isElsewhere = job.setup !== undefined,
): ItemCheck {
  // a copy: facts about frozen nodes are computed once, and the graph may belong to the caller
  const frozen = parseGraph(frozenGraph(parseGraphText(printJson(parsed.prompt)) as object), job);
  const { registry } = surroundings;
  const definitions = isElsewhere ? undefined : findDefinitions(frozen, registry);
  const definitionOf = (type: string) => findDefinition(frozen, type, registry);
  const absoluteJob = { ...job, inputDir: resolve(job.inputDir ?? "input") };
  const checked = (values: ItemValues): CheckedGraph | undefined => {
    if (definitions === undefined) return undefined;
    const prompt = fillGraph(frozen.prompt, { ...job.set, ...values }, definitionOf);
    return checkGraph({ ...frozen, prompt }, definitions, absoluteJob, surroundings);
  };
  const drawn = (item: BatchItem) => ({ ...item, values: graph.seedsOf(item.values, ANY_SEED) });
  const refuse = (item: BatchItem): void => {
    const { values } = drawn(item);
    const fault = item.fault ?? graph.faultOf(values);
    if (fault !== undefined) throw fault;
    graph.nameOf({ ...item, values }, 0, 1);
    const { leftOut, validation } = checked(values) ?? { leftOut: [] };
    if (leftOut.length === 0 || validation === undefined) return;
    if (job.partial !== true || !validation.ok) throw validationError(validation);
  };
  return {
    faultOf(item) {
      try {
        refuse(item);
        return undefined;
      } catch (error) {
        if (!(error instanceof LatentkitError)) throw error;
        return error === item.fault ? error : withOrigin(error, item);
      }
    },
    refusalOf(key, value) {
      const inputs = inputsOfKey(frozen.prompt, key, definitionOf);
      if ("reason" in inputs) return undefined;
      const { validation } = checked(graph.seedsOf({ [key]: value }, ANY_SEED)) ?? {};
      if (validation === undefined) return undefined;
      for (const { nodeId, input } of inputs) {
        const node = validation.nodeErrors[nodeId];
        const errors = (node?.errors ?? []).filter((error) => error.input === input);
        if (errors.length > 0) {
          return validationError({ ...validation, nodeErrors: { [nodeId]: { ...node!, errors } } });
        }
      }
      return undefined;
    },
    namesOf(item, position, number) {
      const { values, ...rest } = drawn(item);
      const names = graph.startsOf(values, { number, name: graph.nameOf({ ...rest, values }, position, number) });
      const running = checked(values)?.prepared;
      return Object.entries(names).flatMap(([id, start]) => (running === undefined || running.has(id) ? [start] : []));
    },
  };
}
