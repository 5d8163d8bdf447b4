import { resolve } from "node:path";
import { orGivenUp } from "../base/abort.js";
import { LatentkitError, messageOf } from "../base/errors.js";
import {
  CHECKED_LATER,
  checkOptions,
  HOST,
  hasMethods,
  type OptionRules,
  pickOptions,
  REGISTRY,
} from "../base/options.js";
import { createDiskCache } from "../graph/disk-cache/disk-cache.js";
import type { RunEvent } from "../graph/events.js";
import { executeGraph as execute } from "../graph/execute.js";
import { JOB_RULES, type Job, jobOf } from "../graph/job.js";
import { type InternalField, SURROUNDINGS_RULES, type Surroundings } from "../graph/surroundings.js";
import { type ValidateOptions, type Validation, validateGraph as validate } from "../graph/validate.js";
import { promptError } from "../graph/validation/graph-error.js";
import type { Host } from "../host/host.js";
import { createPreviewHost } from "../host/preview/index.js";
import { registry } from "../nodes/index.js";
import type { Registry } from "../nodes/registry.js";
import { readPrompt } from "./source.js";

// Defaults of graphs are bound here; the graph layer does not have any.
// All runs share one preview host, which keeps the rows of text tokens: half the time of a small render.
/** Every node of the package. */
export const defaultRegistry: Registry = registry;

/** A host without weights: pictures stand in for a real model's. One for all runs: it keeps what it computes, bounded. */
export const defaultHost: Host = createPreviewHost();

/** Options of `validateGraph`. */
export interface ValidateGraphOptions extends Omit<ValidateOptions, "registry" | "builtIns"> {
  /** The nodes; those of the package if absent. */
  readonly registry?: Registry;
}
const { targets, partialExecutionTargets, inputDir, files, classAliases, allowNetwork } = JOB_RULES;

const VALIDATE_RULES: OptionRules<ValidateGraphOptions> = {
  targets,
  partialExecutionTargets,
  inputDir,
  files,
  classAliases,
  allowNetwork,
  registry: REGISTRY,
  host: [HOST[0], (value) => hasMethods(value, "checkpoints")],
};

/**
 * Checks a graph as ComfyUI does: good if one output can be computed, with the errors of all nodes. Writes nothing. The graph
 * is an object, JSON text in API format, or the bytes or file: URL of a file that `render` reads. All nodes, the preview host and ./input if absent.
 */
export function validateGraph(prompt: unknown, options: ValidateGraphOptions = {}): Validation {
  checkOptions("validateGraph", options, VALIDATE_RULES);
  const { registry, classAliases } = options;
  let graph: unknown;
  try {
    graph = readPrompt(prompt, { registry, classAliases, targets: options.targets });
  } catch (error) {
    if (!(error instanceof LatentkitError)) throw error;
    return { ok: false, error: promptError(error), nodeErrors: {}, warnings: [] };
  }
  return validate(graph, {
    ...options,
    registry: options.registry ?? defaultRegistry,
    host: options.host ?? defaultHost,
    builtIns: defaultRegistry,
    inputDir: resolve(options.inputDir ?? "input"),
  });
}

/** Options of `executeGraph`: the parts of a job that the executor uses, and live objects around it. */
export interface ExecuteGraphOptions
  extends Pick<
      Job,
      | "targets"
      | "partialExecutionTargets"
      | "outputDir"
      | "inputDir"
      | "files"
      | "classAliases"
      | "config"
      | "partial"
      | "allowNetwork"
      | "device"
      | "previews"
      | "validate"
      | "runId"
    >,
    Partial<Omit<Surroundings, InternalField>> {
  /** Further texts for the pictures, by key. */
  extraPnginfo?: unknown;
}

const EXECUTE_RULES: OptionRules<ExecuteGraphOptions> = {
  targets: JOB_RULES.targets,
  partialExecutionTargets: JOB_RULES.partialExecutionTargets,
  outputDir: JOB_RULES.outputDir,
  inputDir: JOB_RULES.inputDir,
  files: JOB_RULES.files,
  classAliases: JOB_RULES.classAliases,
  config: JOB_RULES.config,
  partial: JOB_RULES.partial,
  allowNetwork: JOB_RULES.allowNetwork,
  device: JOB_RULES.device,
  previews: JOB_RULES.previews,
  validate: JOB_RULES.validate,
  runId: JOB_RULES.runId,
  ...SURROUNDINGS_RULES,
  extraPnginfo: CHECKED_LATER,
};

/**
 * Runs a graph as ComfyUI does, as a stream of events; ending the iteration early interrupts the run. One that `signal`
 * interrupts yields `run-done` with that status, then throws the signal's reason. The graph is what `validateGraph` takes.
 * All nodes, the preview host, ./out and ./input if absent.
 */
export function executeGraph(
  prompt: unknown,
  options: ExecuteGraphOptions = {},
): AsyncGenerator<RunEvent, void, undefined> {
  checkOptions("executeGraph", options, EXECUTE_RULES);
  const job = jobOf(options as Job);
  const { classAliases, outputDir = "out", inputDir = "input" } = job;
  const folders = { outputDir: resolve(outputDir), inputDir: resolve(inputDir) };
  const surroundings = surroundingsOf(
    {},
    pickOptions<Omit<ExecuteGraphOptions, keyof Job>>(options, SURROUNDINGS_RULES),
  );
  const { registry, clock } = surroundings;
  return execute(
    readPrompt(prompt, { registry, clock, classAliases, targets: job.targets }),
    { ...job, ...folders },
    surroundings,
  );
}

/** Surroundings with the package's nodes, the preview host and the job's disk cache for missing parts. */
export function surroundingsOf({ cacheDir }: Pick<Job, "cacheDir">, given: Partial<Surroundings>): Surroundings {
  const { registry = defaultRegistry, host = defaultHost } = given;
  const diskCache = given.diskCache ?? (cacheDir === undefined ? undefined : createDiskCache({ folder: cacheDir }));
  return { ...given, registry, host, diskCache, builtIns: defaultRegistry };
}

/**
 * Surroundings of a job with the nodes and the host of its setup module, unless others are given. Fails with
 * setup.failed, and with the reason of their signal, which a setup module does not get.
 */
export async function openSurroundings(
  job: Pick<Job, "setup" | "cacheDir">,
  given: Partial<Surroundings>,
): Promise<Surroundings> {
  const setup = job.setup === undefined ? {} : await orGivenUp(runSetup(job.setup), given.signal, 0);
  const { registry = setup.registry, host = setup.host } = given;
  return surroundingsOf(job, { ...given, registry, host });
}

const SETUP_RULES = { registry: REGISTRY, host: HOST };

/** Calls the function of the setup module at this address. Fails with setup.failed for any fault in it. */
export async function runSetup(url: URL): Promise<Partial<Pick<Surroundings, "registry" | "host">>> {
  try {
    const module = (await import(url.href)) as { default?: unknown; setup?: unknown };
    const create = module.default ?? module.setup;
    if (typeof create !== "function") throw new Error("expected a function as its default export.");
    const result: unknown = (await create()) ?? {};
    checkOptions<Partial<Pick<Surroundings, "registry" | "host">>>("its result", result, SETUP_RULES);
    return result;
  } catch (cause) {
    const why = messageOf(cause);
    const message = `Setup module ${url}: ${why}${/[.?!]$/.test(why) ? "" : "."}`;
    throw new LatentkitError("setup.failed", message, {}, { cause });
  }
}

/** Whether a node of the graph loads a model file. */
export function loadsModels(prompt: Readonly<Record<string, unknown>>, registry: Registry): boolean {
  const classes = new Set(Object.values(prompt).map((node) => (node as { class_type?: unknown }).class_type));
  const inputs = [...classes].flatMap((name) => Object.values(registry.get(String(name))?.inputs ?? {}));
  return inputs.some(({ files }) => files !== undefined);
}
