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
 * Options of a batch: the job that its items share, live objects around it, and how it goes on. "random" for a seed of `set`
 * or of an item draws one for each item; "random:3" is the third of those that all items share.
 */
export interface BatchOptions
  extends Omit<Job, "passing" | "output" | "validate" | "runId">,
    Partial<Omit<Surroundings, InternalField | "cache" | "diskCache" | "outputHandling" | "onEvent">> {
  /** Items that render at once, 1 to 256: worker threads, or turns where the options hold live objects; one for each processor if absent. */
  concurrency?: number;
  /** A file that a killed batch goes on from; none if absent. */
  journal?: string;
  /** Goes on from the journal: what is finished is skipped, what was cut or failed is done again. */
  resume?: boolean;
  /** No item starts after one has failed. */
  failFast?: boolean;
  /** Further tries of an item that fails, 0 to 100; 0 if absent. */
  retry?: number;
  /** Keys of items that fit nothing in the graph are left out, instead of failing the item; `name` may use them without. */
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
  /** Called when a GPU has been chosen for `models`, and when "auto" has found none: `reason` is a sentence then. Must not throw. */
  onDevice?: NonNullable<RuntimeOptions["onDevice"]>;
  /** Number of items, where the application knows it. */
  total?: number;
  /** Cuts the batch once what runs has come to its end; `signal` cuts it at once. */
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
