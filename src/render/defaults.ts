import { resolve } from "node:path";
import type { RunEvent } from "../graph/events.js";
import { type ExecuteOptions, executeGraph as execute, runGraph as run } from "../graph/execute.js";
import { type ValidateOptions, type Validation, validateGraph as validate } from "../graph/validate.js";
import { createPreviewHost } from "../host/preview/index.js";
import type { Host } from "../host/types.js";
import { registry } from "../nodes/index.js";
import type { Registry } from "../nodes/registry.js";
import { checkOptions } from "../options.js";
import { EXECUTE_RULES, VALIDATE_RULES } from "./check-options.js";

/** Every node of the package. */
export const defaultRegistry: Registry = registry;

/** A host without weights: pictures stand in for a real model's. One for all runs: it keeps what it computes, bounded. */
export const defaultHost: Host = createPreviewHost();

type Defaulted<Options, Key extends keyof Options> = Omit<Options, Key> & Partial<Pick<Options, Key>>;

/** Options of `validateGraph`. */
export type ValidateGraphOptions = Defaulted<ValidateOptions, "registry">;

/**
 * Checks a graph as ComfyUI does: good where one output can be computed, with the errors of all nodes. Writes nothing.
 * All nodes, the preview host and ./input where absent.
 */
export function validateGraph(prompt: unknown, options: ValidateGraphOptions = {}): Validation {
  checkOptions("validateGraph", options, VALIDATE_RULES);
  return validate(prompt, {
    ...options,
    registry: options.registry ?? defaultRegistry,
    host: options.host ?? defaultHost,
    inputDir: resolve(options.inputDir ?? "input"),
  });
}

type RunOptions = Defaulted<ExecuteOptions, "registry" | "host" | "outputDir" | "inputDir">;

/** Options for which `render` and the threads answer, not their callers. */
type OwnOption = "builtIns" | "isUnheard" | "rewritesFiles" | "passing" | "metadataPrompt" | "hidePrompt";

/** Options of `executeGraph`. */
export type ExecuteGraphOptions = Omit<RunOptions, OwnOption>;

/**
 * Runs a graph as ComfyUI does, as a stream of events; ending the iteration early interrupts the run.
 * All nodes, the preview host, ./out and ./input where absent.
 */
export function executeGraph(
  prompt: unknown,
  options: ExecuteGraphOptions = {},
): AsyncGenerator<RunEvent, void, undefined> {
  checkOptions("executeGraph", options, EXECUTE_RULES);
  return execute(prompt, withDefaults(options));
}

/** See `runGraph` of the graph layer; the same where absent. */
export const runGraph = (prompt: unknown, options: RunOptions): Promise<void> => run(prompt, withDefaults(options));

const withDefaults = (options: RunOptions): ExecuteOptions => ({
  ...options,
  registry: options.registry ?? defaultRegistry,
  builtIns: defaultRegistry,
  host: options.host ?? defaultHost,
  outputDir: resolve(options.outputDir ?? "out"),
  inputDir: resolve(options.inputDir ?? "input"),
});
