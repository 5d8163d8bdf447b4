import {
  COUNT,
  checkedLater,
  FILE,
  FLAG,
  FUNCTION,
  OBJECT,
  type OptionRules,
  rulesWithout,
  SIGNAL,
  TEXT,
} from "../../base/options.js";
import { JOB_RULES, type Job } from "../../graph/job.js";
import { type InternalField, SURROUNDINGS_RULES, type Surroundings } from "../../graph/surroundings.js";
import type { RuntimeOptions } from "../../host/checkpoint/session/runtime.js";
import { MODEL_SETTINGS, type ModelSettings } from "../../host/checkpoint/settings.js";
import type { GridOptions } from "../contact-sheet/grid.js";

/**
 * Options of a batch: the job that its items share, live objects around it, and how it continues. A seed "random" in `set`
 * or in an item is drawn for each item; "random:3" is the third of those that all items share.
 */
export interface BatchOptions
  extends Omit<Job, "passing" | "output" | "validate" | "runId">,
    Partial<Omit<Surroundings, InternalField | "cache" | "diskCache" | "outputHandling" | "onEvent">> {
  /** Items that render at once, 1 to 256: in worker threads, or in turns if the options hold live objects; one for each processor if absent. */
  concurrency?: number;
  /** A file from which a killed batch continues; none if absent. */
  journal?: string;
  /** Continues from the journal: finished items are skipped, interrupted and failed ones are done again. */
  resume?: boolean;
  /** No item starts after one has failed. */
  failFast?: boolean;
  /** Further tries of an item that fails, 0 to 100; 0 if absent. */
  retry?: number;
  /** Ignores keys of items that the graph does not know, instead of failing the item. `name` may use such keys anyway. */
  extraColumns?: boolean;
  /** File part of the images' names, as "{prefix}_{5.seed}_{number}"; "{prefix}_{number}" if absent. */
  name?: string;
  /** A labelled grid of the pictures by the values of two or three keys, written at the end. */
  grid?: GridOptions;
  /**
   * Models of the worker threads, which share one process for their networks: the calls of the first item that is not done
   * go first, and equal prompts are encoded once. The preview host if absent. For turns in this thread: `host`.
   */
  models?: ModelSettings;
  /** Called when a network of `models` begins to load, has been loaded and has been released. Must not throw. */
  onLoad?: NonNullable<RuntimeOptions["onLoad"]>;
  /** Called when a GPU has been chosen for `models`, and when "auto" has found none: `reason` then says why in a sentence. Must not throw. */
  onDevice?: NonNullable<RuntimeOptions["onDevice"]>;
  /** Number of items, if the application knows it. */
  total?: number;
  /** Stops the batch once the running items have ended; `signal` stops it at once. */
  drain?: AbortSignal;
}

/** Rules of the live objects of a batch, which has its own caches, names its files and reports its items. */
export const LIVE_RULES = rulesWithout(SURROUNDINGS_RULES, "cache", "diskCache", "outputHandling", "onEvent");

export const BATCH_RULES: OptionRules<BatchOptions> = {
  ...rulesWithout(JOB_RULES, "passing", "output", "validate", "runId"),
  ...LIVE_RULES,
  concurrency: checkedLater("a whole number"),
  journal: FILE,
  resume: FLAG,
  failFast: FLAG,
  retry: checkedLater("a whole number"),
  extraColumns: FLAG,
  name: TEXT,
  grid: OBJECT,
  total: COUNT,
  drain: SIGNAL,
  models: MODEL_SETTINGS,
  onLoad: FUNCTION,
  onDevice: FUNCTION,
};
