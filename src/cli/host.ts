import { onAbort } from "../base/abort.js";
import { LatentkitError } from "../base/errors.js";
import { gigabytes, type NetworkMemory } from "../base/memory.js";
import { parseGraph } from "../graph/parse.js";
import { MOST_MODELS_BYTES, NETWORK_DEVICES, type NetworkDevice } from "../host/checkpoint/runtime/session-options.js";
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

/** Lines of `--help` of commands that run networks; explanations begin at that column. */
export function networkHelp(column: number): readonly string[] {
  const indent = " ".repeat(column);
  return [
    "  --models-device DEVICE",
    `${indent}where networks run: cpu, auto, cuda, dml, coreml or webgpu`,
    `${indent}(a GPU that doctor or auto has found good, else cpu)`,
    "  --models-memory BYTES",
    `${indent}memory for their weights, such as 6GB; on a GPU its own`,
  ];
}

/** Options of commands that list models. */
export const hostOptions = { models: { type: "string", multiple: true } } as const;

/** Options of commands that run networks. */
export const networkOptions = {
  ...hostOptions,
  "models-device": { type: "string" },
  "models-memory": { type: "string" },
} as const;

/** Value of --models; undefined without it. */
export const modelsOf = (args: Arguments): string[] | undefined =>
  args.has("models") ? [...args.values("models")] : undefined;

/** Values of --models, --models-device and --models-memory for a configuration; undefined for what is absent. */
export const modelFlags = (args: Arguments) => ({
  models: modelsOf(args),
  models_device: deviceNamed("--models-device", args.value("models-device")),
  models_memory: memoryOf(args.value("models-memory")),
});

function deviceNamed(source: string, text: string | undefined): NetworkDevice | undefined {
  if (text === undefined || NETWORK_DEVICES.includes(text as NetworkDevice)) return text as NetworkDevice | undefined;
  const expected = NETWORK_DEVICES.join(", ");
  throw new LatentkitError("usage.invalid", `${source}: expected ${expected}, received ${JSON.stringify(text)}.`);
}

const UNITS = { "": 1, KB: 1e3, MB: 1e6, GB: 1e9, KIB: 2 ** 10, MIB: 2 ** 20, GIB: 2 ** 30 } as const;

function memoryOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const [, digits, unit = ""] = /^(\d{1,15}(?:\.\d{1,3})?) ?([KMG]i?B)?$/i.exec(text) ?? [];
  const bytes = Math.round(Number(digits) * UNITS[unit.toUpperCase() as keyof typeof UNITS]);
  if (bytes > 0 && bytes <= MOST_MODELS_BYTES) return bytes;
  const message = `--models-memory: expected bytes, such as 6GB or 500MiB, received ${JSON.stringify(text)}.`;
  throw new LatentkitError("usage.invalid", message);
}

/** Folders of models, and where their networks run. */
export type Models = Pick<ModelSettings, "device" | "memory"> & { readonly folders: readonly string[] };

/** The models that the command line of a command without a configuration names, with the variable for their device. */
export function modelsNamed(args: Arguments, { env }: Pick<Terminal, "env">): Models {
  const { models: folders = [], models_device, models_memory: memory } = modelFlags(args);
  const variable = "LATENTKIT_MODELS_DEVICE";
  return { folders, device: models_device ?? deviceNamed(variable, env[variable] || undefined), memory };
}

// decision 224
/**
 * The host of the models in these folders, which the signal closes: a trial of a GPU takes up to minutes. Undefined without
 * any folder: then the preview host renders.
 */
export async function openHost(
  { folders, device, memory }: Models,
  terminal: Terminal,
  { isQuiet = false, signal }: { readonly isQuiet?: boolean; readonly signal?: AbortSignal } = {},
): Promise<Host | undefined> {
  if (folders.length === 0) return undefined;
  const { createCheckpointHost } = await import("../host/checkpoint/index.js");
  const host = createCheckpointHost({ models: folders, device, memory, ...modelReports(terminal, isQuiet) });
  onAbort(signal, () => void host.close());
  return host;
}

/** Models for threads that render; none without a folder. */
export const modelsIn = (
  models: Models,
  terminal: Terminal,
  isQuiet: boolean,
): ModelReports & Pick<BatchOptions, "models"> =>
  models.folders.length === 0 ? {} : { models, ...modelReports(terminal, isQuiet) };

/** Estimates of memory, and what follows where they do not fit: " (0.7 GB, and 6.2 GB of its file)". */
function inWords({ bytes, work, pages, free }: NetworkMemory): string {
  if (pages === 0) return ` (${gigabytes(bytes + work)})`;
  const isSlow = free !== undefined && pages > free;
  const slowly = isSlow ? `, which are read again in each step: ${gigabytes(free)} are free for them` : "";
  return ` (${gigabytes(bytes + work)}, and ${gigabytes(pages)} of its file${slowly})`;
}

type ModelReports = Pick<BatchOptions, "onLoad" | "onDevice">;

/** Prints a line for the device of networks, and one for each network that begins to load; warnings even if quiet. */
function modelReports(terminal: Terminal, isQuiet: boolean): ModelReports {
  // a bar may stand on the line
  const print = (text: string) => terminal.err(`${terminal.isTerminal ? EMPTY_LINE : ""}${harmless(text)}\n`);
  return {
    onLoad: (label, state, memory) =>
      isQuiet || state !== "loading" ? undefined : print(`Loading ${label}${memory ? inWords(memory) : ""} …`),
    onDevice: ({ provider, adapter, reason }) => {
      if (reason !== undefined) print(`Warning: networks run on the CPU. ${reason}`);
      else if (!isQuiet) print(`Networks run on ${adapter ?? "the GPU"}, by ${provider}.`);
    },
  };
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
