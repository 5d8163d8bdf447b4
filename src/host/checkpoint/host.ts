import type { MessagePort } from "node:worker_threads";
import { CHECKED_LATER, checkOptions, FUNCTION, type OptionRules } from "../../base/options.js";
import type { Host } from "../host.js";
import { FileHashes, StoredHashes } from "./files/file-hashes.js";
import { MODELS_RULE } from "./files/kinds.js";
import { ModelFolders } from "./files/model-folders.js";
import { listedBy, withAbilities } from "./listing-host.js";
import { ModelLoader } from "./loader/model-loader.js";
import { provenanceOf } from "./reports/provenance.js";
import { createRuntime } from "./runtime/client.js";
import { RemoteRuntime } from "./runtime/remote/remote-runtime.js";
import type { Runtime, RuntimeOptions } from "./session/runtime.js";
import type { ModelSettings } from "./settings.js";

/** Options of `createCheckpointHost`. */
export interface CheckpointHostOptions extends Omit<ModelSettings, "folders"> {
  /** ComfyUI's `models` folder, or several, or files `extra_model_paths.yaml`. */
  readonly models: ModelSettings["folders"];
  /** Called when a network begins to load, has been loaded and has been released. */
  readonly onLoad?: NonNullable<RuntimeOptions["onLoad"]>;
  /** Called when a GPU has been chosen, and when "auto" has found none: `reason` then says why in a sentence. */
  readonly onDevice?: NonNullable<RuntimeOptions["onDevice"]>;
}

const HOST_RULES: OptionRules<CheckpointHostOptions> = {
  models: MODELS_RULE,
  device: CHECKED_LATER,
  threads: CHECKED_LATER,
  memory: CHECKED_LATER,
  plan: CHECKED_LATER,
  onLoad: FUNCTION,
  onDevice: FUNCTION,
};

/** A host of checkpoints: what `createCheckpointHost` returns. */
export interface CheckpointHost extends Host {
  /** Starts the process that runs the networks, for which the first of them would wait. */
  start(): void;
  /** Ends the process that runs the networks, and a trial of a GPU; a later call starts new ones. */
  close(): Promise<void>;
}

/**
 * Makes a host that runs people's own checkpoints: `.safetensors` files of Stable Diffusion 1, 2 and XL in ComfyUI's
 * folders, as they are, and folders of diffusers whose networks are exported to ONNX. Networks run in a child process, by
 * ONNX Runtime (the package `onnxruntime-node`), which maps the weights from the files. All other nodes of a graph compute
 * in the thread that renders with the host: for worker threads, name the folders as `models` of `createRenderer`,
 * `batch` and `createGraphAgent`. Throws config.invalid for folders that do not exist.
 */
export function createCheckpointHost(options: CheckpointHostOptions): CheckpointHost {
  checkOptions("createCheckpointHost", options, HOST_RULES, ["models"]);
  const { models, device, threads, memory, plan, onLoad, onDevice } = options;
  const folders = new ModelFolders(models);
  const runtime = createRuntime({ device, threads, memory, plan, onLoad, onDevice });
  const host = hostOf(folders, runtime, new FileHashes(new StoredHashes()));
  return withAbilities({ ...host, start: () => runtime.start(), close: () => runtime.close() });
}

/** A host whose networks run in the runtime of another thread. */
export interface ConnectedHost {
  readonly host: Host;
  /** Does the work of a run, whose calls take turns as its place says. */
  readonly within: RemoteRuntime["within"];
}

/** Opens models in a thread that renders; `port` leads to the runtime's thread. */
export function connectHost(folders: ModelSettings["folders"], port: MessagePort): ConnectedHost {
  const runtime = new RemoteRuntime(port);
  const host = withAbilities(hostOf(new ModelFolders(folders), runtime, runtime));
  return { host, within: (place, work) => runtime.within(place, work) };
}

function hostOf(folders: ModelFolders, runtime: Runtime, hashes: Pick<FileHashes, "sha256">): Host {
  const loader = new ModelLoader(folders, runtime);
  return {
    ...listedBy(folders),
    loadCheckpoint: (name) => loader.checkpoint(name),
    loadFile: (kind, name, _signal, settings, warn) => loader.file(kind, name, settings, warn),
    provenance: (files, signal) => provenanceOf(files, { folders, hashes, runtime }, signal),
  };
}
