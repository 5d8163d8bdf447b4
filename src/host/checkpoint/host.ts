import { CHECKED_LATER, checkOptions, FUNCTION, type OptionRules } from "../../base/options.js";
import type { Host, HostAbility } from "../types.js";
import { FileHashes } from "./files/file-hashes.js";
import { MODELS_RULE, ModelFolders } from "./files/model-folders.js";
import { StoredHashes } from "./files/stored-hashes.js";
import { LOADABLE, ModelLoader } from "./model-loader.js";
import { promptWarnings } from "./reports/prompt-warnings.js";
import { provenanceOf } from "./reports/provenance.js";
import { FileRefusals } from "./reports/refusals.js";
import { createRuntime, type RuntimeOptions } from "./runtime/client.js";

/** Options of `createCheckpointHost`. */
export interface CheckpointHostOptions {
  /** ComfyUI's `models` folder, or several, or files `extra_model_paths.yaml`. */
  readonly models: string | readonly string[];
  /** Where networks run: "cpu", "auto" or a provider of ONNX Runtime; "cpu" where absent. */
  readonly device?: NonNullable<RuntimeOptions["device"]>;
  /** Threads of the runtime; one for each core where absent. */
  readonly threads?: number;
  /** Bytes of weights that stay loaded; as much as is free where absent. */
  readonly memory?: number;
  /**
   * Way to hold weights: "fold" converts them once, "stream" reads them from the file at every call and takes the least
   * memory; chosen for each network where absent.
   */
  readonly plan?: NonNullable<RuntimeOptions["plan"]>;
  /** Called when a network begins to load, has been loaded and has been released. */
  readonly onLoad?: NonNullable<RuntimeOptions["onLoad"]>;
}

const NO_ABILITIES: readonly HostAbility[] = [];

const HOST_RULES: OptionRules<CheckpointHostOptions> = {
  models: MODELS_RULE,
  device: CHECKED_LATER,
  threads: CHECKED_LATER,
  memory: CHECKED_LATER,
  plan: CHECKED_LATER,
  onLoad: FUNCTION,
};

/** A host of checkpoints: what `createCheckpointHost` returns. */
export interface CheckpointHost extends Host {
  /** Ends the process that runs the networks; a later call starts it again. */
  close(): Promise<void>;
}

/**
 * Makes a host that runs people's own checkpoints: `.safetensors` files of Stable Diffusion 1, 2 and XL in ComfyUI's
 * folders, as they are, and folders of diffusers whose networks are exported to ONNX. Networks run in a child process, by
 * ONNX Runtime (the package `onnxruntime-node`), which maps the weights from the files. Throws config.invalid for folders that do not exist.
 */
export function createCheckpointHost(options: CheckpointHostOptions): CheckpointHost {
  checkOptions("createCheckpointHost", options, HOST_RULES, ["models"]);
  const { models, device, threads, memory, plan, onLoad } = options;
  const folders = new ModelFolders(models);
  const runtime = createRuntime({ device, threads, memory, plan, onLoad });
  const loader = new ModelLoader(folders, runtime);
  const refusals = new FileRefusals(folders);
  const hashes = new FileHashes(new StoredHashes());
  const host: CheckpointHost = {
    name: "checkpoint",
    preview: false,
    checkpoints: () => refusals.offered("checkpoints"),
    loadCheckpoint: (name) => loader.checkpoint(name),
    files: (kind) => (LOADABLE.some((loadable) => loadable === kind) ? refusals.offered(kind) : undefined),
    fileOf: (kind, name) => folders.find(kind, name)?.name,
    loadFile: (kind, name, _signal, settings, warn) => loader.file(kind, name, settings, warn),
    refusal: (kind, name) => refusals.of(kind, name),
    refresh: () => refusals.refresh(),
    promptWarnings: (text, models) => {
      const encoders = models.flatMap(({ kind, name }) => refusals.encoders(kind, name) ?? []);
      return promptWarnings(text, folders, encoders);
    },
    provenance: (named, signal) => provenanceOf(named, { folders, hashes, runtime }, signal),
    close: () => runtime.close(),
  };
  return Object.freeze(Object.defineProperty(host, "abilities", { value: NO_ABILITIES }));
}
