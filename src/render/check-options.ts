import {
  CHECKED_LATER,
  COUNT,
  checkedLater,
  FILE,
  FLAG,
  FOLDER,
  FUNCTION,
  HOST,
  hasMethods,
  isObject,
  NAMES,
  OBJECT,
  type OptionRules,
  REGISTRY,
  type Rule,
  SIGNAL,
  TEXT,
  TEXTS,
  VALUES,
} from "../options.js";
import type { BatchOptions } from "./batch/batch.js";
import type { ExecuteGraphOptions, ValidateGraphOptions } from "./defaults.js";
import type { RenderOptions } from "./render.js";
import type { Made } from "./setup-module.js";

/** Metadata of PNG files: graph and extra_pnginfo, the graph alone, or nothing. */
export const METADATA_POLICIES = ["full", "prompt", "none"] as const;

const IDS: Rule = [
  "a list of node ids",
  (value) => Array.isArray(value) && value.every((id) => typeof id === "string"),
];
const SETUP: Rule = [
  "the URL of a module (pathToFileURL makes one)",
  (value) => isObject(value) && typeof value.href === "string",
];

/** Rules for the object that a setup module returns. */
export const MADE_RULES: OptionRules<Made> = { registry: REGISTRY, host: HOST };

export const VALIDATE_RULES: OptionRules<ValidateGraphOptions> = {
  registry: REGISTRY,
  host: [HOST[0], (value) => hasMethods(value, "checkpoints")],
  inputDir: FOLDER,
  classAliases: NAMES,
  targets: IDS,
  partialExecutionTargets: [IDS[0], (value) => value === null || IDS[1](value)],
  allowNetwork: FLAG,
};

/** Ranges, and what hangs on the graph, are checked where they are used. */
const RUN_RULES = {
  registry: REGISTRY,
  host: HOST,
  targets: IDS,
  outputDir: FOLDER,
  inputDir: FOLDER,
  classAliases: NAMES,
  config: VALUES,
  partial: FLAG,
  allowNetwork: FLAG,
  device: CHECKED_LATER,
  clock: FUNCTION,
  fetch: FUNCTION,
  signal: SIGNAL,
} as const satisfies Partial<OptionRules<RenderOptions>>;

const SHARED_RULES = {
  extraPnginfo: VALUES,
  cache: ["a cache, as createCache makes one", (value: unknown) => hasMethods(value, "begin", "has")],
  diskCache: ["a disk cache, as createDiskCache makes one", (value: unknown) => hasMethods(value, "read", "write")],
  output: OBJECT,
  onEvent: FUNCTION,
} as const satisfies Partial<OptionRules<RenderOptions>>;

export const EXECUTE_RULES: OptionRules<ExecuteGraphOptions> = {
  ...RUN_RULES,
  ...SHARED_RULES,
  extraPnginfo: CHECKED_LATER,
  partialExecutionTargets: VALIDATE_RULES.partialExecutionTargets,
  validate: FLAG,
  runId: TEXT,
};

const PICTURE_RULES = {
  set: VALUES,
  setup: SETUP,
  metadata: [
    METADATA_POLICIES.join(", "),
    (value: unknown) => (METADATA_POLICIES as readonly unknown[]).includes(value),
  ],
  redact: ["a list of keys", TEXTS[1]],
} as const satisfies Partial<OptionRules<RenderOptions>>;

export const RENDER_RULES: OptionRules<RenderOptions> = {
  ...RUN_RULES,
  ...SHARED_RULES,
  ...PICTURE_RULES,
  passing: TEXTS,
};

export const BATCH_RULES: OptionRules<BatchOptions> = {
  ...RUN_RULES,
  ...PICTURE_RULES,
  extraPnginfo: VALUES,
  cacheDir: FOLDER,
  concurrency: checkedLater("a whole number"),
  journal: FILE,
  resume: FLAG,
  failFast: FLAG,
  retry: checkedLater("a whole number"),
  name: TEXT,
  total: COUNT,
  drain: SIGNAL,
};
