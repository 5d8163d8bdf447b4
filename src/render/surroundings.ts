import { resolve } from "node:path";
import { LatentkitError } from "../base/errors.js";
import { checkOptions, HOST, hasMethods, type OptionRules, pickOptions, REGISTRY } from "../base/options.js";
import { createDiskCache } from "../graph/disk-cache/disk-cache.js";
import type { RunEvent } from "../graph/events.js";
import { executeGraph as execute } from "../graph/execute.js";
import { EXECUTE_JOB_RULES, type ExecuteJob } from "../graph/job.js";
import { type RunSurroundings, SURROUNDINGS_RULES, type Surroundings } from "../graph/surroundings.js";
import { type ValidateOptions, type Validation, validateGraph as validate } from "../graph/validate.js";
import { promptError } from "../graph/validation/graph-error.js";
import { createPreviewHost } from "../host/preview/index.js";
import type { Host } from "../host/types.js";
import { registry } from "../nodes/index.js";
import type { Registry } from "../nodes/registry.js";
import type { Job } from "./job.js";
import { readPrompt } from "./source.js";

// decisions 2, 20
/** Every node of the package. */
export const defaultRegistry: Registry = registry;

/** A host without weights: pictures stand in for a real model's. One for all runs: it keeps what it computes, bounded. */
export const defaultHost: Host = createPreviewHost();

/** Surroundings of a render, in which no node misses a host. */
export interface RenderSurroundings extends RunSurroundings {
  readonly host: Host;
}

/** Surroundings with all nodes and the preview host where they have none. */
export const withDefaults = (surroundings: Surroundings): RenderSurroundings => ({
  ...surroundings,
  registry: surroundings.registry ?? defaultRegistry,
  builtIns: defaultRegistry,
  host: surroundings.host ?? defaultHost,
});

/** Options of `validateGraph`. */
export interface ValidateGraphOptions extends Omit<ValidateOptions, "registry"> {
  /** The nodes; those of the package where absent. */
  readonly registry?: Registry;
}
const { targets, partialExecutionTargets, inputDir, files, classAliases, allowNetwork } = EXECUTE_JOB_RULES;

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
 * Checks a graph as ComfyUI does: good where one output can be computed, with the errors of all nodes. Writes nothing. The graph
 * is an object, JSON text in API format, or the bytes or file: URL of a file that `render` reads. All nodes, the preview host and ./input where absent.
 */
export function validateGraph(prompt: unknown, options: ValidateGraphOptions = {}): Validation {
  checkOptions("validateGraph", options, VALIDATE_RULES);
  const { registry, classAliases } = options;
  let graph: unknown;
  try {
    graph = readPrompt(prompt, { registry, classAliases });
  } catch (error) {
    if (!(error instanceof LatentkitError)) throw error;
    return { ok: false, error: promptError(error), nodeErrors: {}, warnings: [] };
  }
  return validate(graph, {
    ...options,
    registry: options.registry ?? defaultRegistry,
    host: options.host ?? defaultHost,
    inputDir: resolve(options.inputDir ?? "input"),
  });
}

/** Options of `executeGraph`: its job, and live objects around it. */
export interface ExecuteGraphOptions extends ExecuteJob, Surroundings {}

const EXECUTE_RULES: OptionRules<ExecuteGraphOptions> = { ...EXECUTE_JOB_RULES, ...SURROUNDINGS_RULES };

/**
 * Runs a graph as ComfyUI does, as a stream of events; ending the iteration early interrupts the run. One that `signal`
 * interrupts yields `run-done` with that status, then throws the signal's reason. The graph is what `validateGraph` takes.
 * All nodes, the preview host, ./out and ./input where absent.
 */
export function executeGraph(
  prompt: unknown,
  options: ExecuteGraphOptions = {},
): AsyncGenerator<RunEvent, void, undefined> {
  checkOptions("executeGraph", options, EXECUTE_RULES);
  const job = pickOptions<ExecuteJob>(options, EXECUTE_JOB_RULES);
  const { outputDir = "out", inputDir = "input" } = job;
  const folders = { outputDir: resolve(outputDir), inputDir: resolve(inputDir) };
  const surroundings = withDefaults(pickOptions<Surroundings>(options, SURROUNDINGS_RULES));
  const { registry, clock } = surroundings;
  const graph = readPrompt(prompt, { registry, clock, classAliases: job.classAliases });
  return execute(graph, { ...job, ...folders }, surroundings);
}

/** Live objects that a job names: its disk cache, and the result of its setup module. Those at hand have precedence. */
export function surroundingsOf(
  { cacheDir }: Pick<Job, "cacheDir">,
  live: Surroundings,
  setup: Setup = {},
): RenderSurroundings {
  const { registry = setup.registry, host = setup.host } = live;
  const diskCache = live.diskCache ?? (cacheDir === undefined ? undefined : createDiskCache({ folder: cacheDir }));
  return withDefaults({ ...live, registry, host, diskCache });
}

/** Surroundings of a job, for which its setup module is called. Fails with setup.failed. */
export async function openSurroundings(
  job: Pick<Job, "setup" | "cacheDir">,
  live: Surroundings,
): Promise<RenderSurroundings> {
  return surroundingsOf(job, live, job.setup === undefined ? undefined : await runSetup(job.setup));
}

/** Result of a setup module: nodes and host that functions alone can describe. */
interface Setup {
  readonly registry?: Registry;
  readonly host?: Host;
}

const SETUP_RULES: OptionRules<Setup> = { registry: REGISTRY, host: HOST };

/** Calls the function of the setup module at this address. Fails with setup.failed, whatever went wrong in it. */
export async function runSetup(url: string): Promise<Setup> {
  try {
    const module = (await import(url)) as { default?: unknown; setup?: unknown };
    const create = module.default ?? module.setup;
    if (typeof create !== "function") throw new Error("expected a function as its default export.");
    const setup = ((await create()) ?? {}) as Setup;
    checkOptions("its result", setup, SETUP_RULES);
    return setup;
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
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
