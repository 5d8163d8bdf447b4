import { parseGraph } from "../graph/parse.js";
import type { Host } from "../host/types.js";
import type { BatchOptions } from "../render/batch/batch-options.js";
import { defaultRegistry } from "../render/defaults.js";
import { loadsModels } from "../render/loads-models.js";
import { readGraph } from "../render/source.js";
import type { Arguments } from "./command.js";
import { harmless, type Terminal } from "./terminal.js";

/** Empties the line that the cursor is on. */
const EMPTY_LINE = "\r\x1b[2K";

/** Lines of `--help`. */
export const hostHelp: readonly string[] = [
  "  --models DIR       ComfyUI's models folder, or an extra_model_paths.yaml; repeatable",
];

/** Options of commands that load models. */
export const hostOptions = { models: { type: "string", multiple: true } } as const;

/** Value of --models; undefined without it. */
export const modelsOf = (args: Arguments): string[] | undefined =>
  args.has("models") ? [...args.values("models")] : undefined;

// decision 224
/** The host of the models in these folders; undefined without any: then the preview host renders. */
export async function openHost(
  models: readonly string[],
  terminal: Terminal,
  isQuiet = false,
): Promise<Host | undefined> {
  if (models.length === 0) return undefined;
  const { createCheckpointHost } = await import("../host/checkpoint/index.js");
  return createCheckpointHost({ models, onLoad: loadReport(terminal, isQuiet) });
}

/** The models of these folders for threads that render; none without any. */
export const modelsIn = (folders: readonly string[], terminal: Terminal, isQuiet: boolean): BatchModels =>
  folders.length === 0 ? {} : { models: { folders }, onLoad: loadReport(terminal, isQuiet) };

type BatchModels = Pick<BatchOptions, "models" | "onLoad">;

/** Prints a line for each network that begins to load. */
function loadReport(terminal: Terminal, isQuiet: boolean): NonNullable<BatchOptions["onLoad"]> {
  // a bar may stand on the line
  const print = (text: string) => terminal.err(`${terminal.isTerminal ? EMPTY_LINE : ""}${harmless(text)}\n`);
  return (label, state) => (isQuiet || state !== "loading" ? undefined : print(`Loading ${label} …`));
}

/** Whether a node of the graph loads a model; false where the graph cannot be read, which others say. */
export function graphLoadsModels(path: string): boolean {
  try {
    return loadsModels(parseGraph(readGraph(path).graph).prompt, defaultRegistry);
  } catch {
    return false;
  }
}

/** The line that says which host renders. */
export const hostLine = (hasModels: boolean): string =>
  !hasModels
    ? "Preview host: pictures stand in for a model's; --models DIR renders with your checkpoints.\n"
    : "Checkpoint host: your models, on ONNX Runtime.\n";
