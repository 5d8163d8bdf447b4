import { onAbort } from "../base/abort.js";
import { gigabytes, type NetworkMemory } from "../base/bytes.js";
import { LatentkitError } from "../base/errors.js";
import { NETWORK_DEVICES } from "../host/checkpoint/session/options.js";
import type { ModelSettings } from "../host/checkpoint/settings.js";
import type { Host } from "../host/host.js";
import type { BatchOptions } from "../render/batch/batch-options.js";
import { type DeviceChoice, parseDevice } from "../tensor/device/device.js";
import type { Arguments } from "./table/arguments.js";
import type { modelOptions, networkOptions } from "./table/commands.js";
import { type ValuesOf, wordOf } from "./table/option.js";
import { EMPTY_LINE, harmless, type Terminal } from "./terminal.js";

type ModelArguments = Arguments<ValuesOf<typeof modelOptions>>;
type NetworkArguments = Arguments<ValuesOf<typeof networkOptions>>;

/** Value of --models; undefined without it. */
export const modelsOf = (args: ModelArguments): string[] | undefined =>
  args.has("models") ? [...args.get("models")] : undefined;

/** Values of --models, --models-device and --models-memory for a configuration; undefined for what is absent. */
const modelFlags = (args: NetworkArguments) => ({
  models: modelsOf(args),
  models_device: args.get("models-device"),
  models_memory: args.get("models-memory"),
});

/** Value of --device. */
export function deviceOf(args: Arguments<{ readonly device: string | undefined }>): DeviceChoice | undefined {
  const text = args.get("device");
  if (text === undefined) return undefined;
  try {
    return parseDevice(text, "--device");
  } catch (error) {
    // a graphics card is meant, and the networks of models need it most
    const message = `${(error as Error).message} --models-device sets where networks run.`;
    throw new LatentkitError("usage.invalid", message, {}, { cause: error });
  }
}

/** `allow_network` as --offline sets it; undefined without it. */
export const networkOf = (args: Arguments<{ readonly offline: boolean }>): false | undefined =>
  args.get("offline") ? false : undefined;

/** Options for the device of a graph, for a configuration; undefined if absent. */
export const deviceFlags = (
  args: NetworkArguments & Arguments<{ readonly device: string | undefined; readonly offline: boolean }>,
) => ({ ...modelFlags(args), device: deviceOf(args), allow_network: networkOf(args) });

/** Folders of models, and where their networks run. */
export type Models = Pick<ModelSettings, "device" | "memory"> & { readonly folders: readonly string[] };

const DEVICE_VARIABLE = "LATENTKIT_MODELS_DEVICE";

/** The models that the command line of a command without a configuration names, with the variable for their device. */
export function modelsNamed(args: NetworkArguments, { env }: Pick<Terminal, "env">): Models {
  const { models: folders = [], models_device, models_memory: memory } = modelFlags(args);
  const named = env[DEVICE_VARIABLE] ?? "";
  const device = models_device ?? (named === "" ? undefined : wordOf(NETWORK_DEVICES, named, DEVICE_VARIABLE));
  return { folders, device, memory };
}

// A single graph renders on the process's own thread: starting two more takes longer than they save.
/**
 * The host of the models in these folders, which the signal closes: a trial of a GPU takes up to minutes. Undefined without
 * any folder: then the preview host renders. With `isNeeded`, the process of the networks starts while the graph is read.
 */
export async function openHost(
  { folders, device, memory }: Models,
  terminal: Terminal,
  {
    isQuiet = false,
    isNeeded = false,
    signal,
  }: { readonly isQuiet?: boolean; readonly isNeeded?: boolean; readonly signal?: AbortSignal } = {},
): Promise<Host | undefined> {
  if (folders.length === 0) return undefined;
  const { createCheckpointHost } = await import("../host/checkpoint/index.js");
  const host = createCheckpointHost({ models: folders, device, memory, ...modelReports(terminal, isQuiet) });
  onAbort(signal, () => void host.close());
  if (isNeeded) host.start();
  return host;
}

/** Models for threads that render; none without a folder. */
export const modelsIn = (
  models: Models,
  terminal: Terminal,
  isQuiet: boolean,
): ModelReports & Pick<BatchOptions, "models"> =>
  models.folders.length === 0 ? {} : { models, ...modelReports(terminal, isQuiet) };

/** Estimates of memory, and the consequence if they do not fit: " (0.7 GB, plus 6.2 GB mapped from its file)". */
function inWords({ bytes, work, pages, free }: NetworkMemory): string {
  if (pages === 0) return ` (${gigabytes(bytes + work)})`;
  const isSlow = free !== undefined && pages > free;
  const slowly = isSlow ? `; only ${gigabytes(free)} are free, so parts are reread in each step` : "";
  return ` (${gigabytes(bytes + work)}, plus ${gigabytes(pages)} mapped from its file${slowly})`;
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
      else if (!isQuiet) print(`Networks run on ${adapter ?? "the GPU"} (${provider}).`);
    },
  };
}

/** The line that says which host renders. */
export const hostLine = (hasModels: boolean): string =>
  !hasModels
    ? "Without a model, latentkit draws placeholders; --models DIR renders with your checkpoints.\n"
    : "Your models, on ONNX Runtime.\n";
