import { LatentkitError } from "../base/errors.js";
import { parseGraph } from "../graph/parse.js";
import { NETWORK_DEVICES, type NetworkDevice } from "../host/checkpoint/runtime/session-options.js";
import type { ModelSettings } from "../host/checkpoint/settings.js";
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

/** Line of `--help` of commands that run networks. */
export const networkHelp = "  --models-device D  where networks run: cpu, auto, cuda, dml, coreml or webgpu (cpu)";

/** Options of commands that list models. */
export const hostOptions = { models: { type: "string", multiple: true } } as const;

/** Options of commands that run networks. */
export const networkOptions = { ...hostOptions, "models-device": { type: "string" } } as const;

/** Value of --models; undefined without it. */
export const modelsOf = (args: Arguments): string[] | undefined =>
  args.has("models") ? [...args.values("models")] : undefined;

/** Value of --models-device; undefined without it. */
export function networkDeviceOf(args: Arguments): NetworkDevice | undefined {
  const text = args.value("models-device");
  if (text === undefined || NETWORK_DEVICES.includes(text as NetworkDevice)) return text as NetworkDevice | undefined;
  const expected = NETWORK_DEVICES.join(", ");
  throw new LatentkitError("usage.invalid", `--models-device: expected ${expected}, received ${JSON.stringify(text)}.`);
}

/** Folders of models, and where their networks run. */
export type Models = Required<Pick<ModelSettings, "device">> & { readonly folders: readonly string[] };

/** The models that the command line names. */
export const modelsNamed = (args: Arguments): Models => ({
  folders: args.values("models"),
  device: (args.has("models-device") && networkDeviceOf(args)) || "cpu",
});

// decision 224
/** The host of the models in these folders; undefined without any: then the preview host renders. */
export async function openHost(
  { folders, device }: Models,
  terminal: Terminal,
  isQuiet = false,
): Promise<Host | undefined> {
  if (folders.length === 0) return undefined;
  const { createCheckpointHost } = await import("../host/checkpoint/index.js");
  return createCheckpointHost({ models: folders, device, onLoad: loadReport(terminal, isQuiet) });
}

/** Models for threads that render; none without a folder. */
export const modelsIn = (models: Models, terminal: Terminal, isQuiet: boolean): BatchModels =>
  models.folders.length === 0 ? {} : { models, onLoad: loadReport(terminal, isQuiet) };

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
    ? "Without a model, latentkit draws placeholders; --models DIR renders with your checkpoints.\n"
    : "Your models, on ONNX Runtime.\n";
