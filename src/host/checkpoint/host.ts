import { realpath } from "node:fs/promises";
import type { MessagePort } from "node:worker_threads";
import { LatentkitError } from "../../base/errors.js";
import { CHECKED_LATER, checkOptions, FUNCTION, type OptionRules } from "../../base/options.js";
import type { Host, NamedModels, Provenance } from "../host.js";
import { FileHashes, StoredHashes } from "./files/file-hashes.js";
import { MODELS_RULE } from "./files/kinds.js";
import { type ModelFile, ModelFolders } from "./files/model-folders.js";
import { embeddingsOf, listedBy, withAbilities } from "./listing-host.js";
import { ModelLoader } from "./loader/model-loader.js";
import { createRuntime } from "./runtime/client.js";
import { RemoteRuntime } from "./runtime/remote/remote-runtime.js";
import type { Runtime, RuntimeOptions } from "./session/runtime.js";
import type { ModelSettings } from "./settings.js";
import { findEmbedding } from "./text-encoder/embeddings.js";

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

/** Everything from which a host knows how its pictures were made. */
interface ProvenanceSource {
  readonly folders: ModelFolders;
  readonly hashes: Pick<FileHashes, "sha256">;
  readonly runtime: Pick<Runtime, "describe">;
}

/**
 * Returns the hashes of the model files that these names mean, and the runtime as far as networks of these files have run
 * in it. A file that cannot be found or read is left out: a branch that did not run may name it. Rejects with
 * the signal's reason. @internal
 */
export async function provenanceOf(
  { files, texts }: NamedModels,
  { folders, hashes, runtime }: ProvenanceSource,
  signal?: AbortSignal,
): Promise<Provenance> {
  const found = new Map<string, ModelFile>();
  const add = (find: () => ModelFile | undefined) => {
    const file = orNone(find);
    if (file !== undefined) found.set(`${file.kind}/${file.name}`, file);
  };
  for (const { kind, name } of files) add(() => folders.find(kind, name));
  for (const word of new Set(texts.flatMap((text) => embeddingsOf(text)))) add(() => findEmbedding(folders, word).file);
  const models: Record<string, string> = {};
  const paths = new Set<string>();
  for (const [name, { path }] of [...found].sort(([a], [b]) => (a < b ? -1 : 1))) {
    try {
      models[name] = await hashes.sha256(path, signal);
      paths.add(await realpath(path));
    } catch (error) {
      if (signal?.aborted) throw error;
    }
  }
  const { version, device, threads, networks } = runtime.describe();
  const own = networks.filter((network) => network.files.every((file) => paths.has(file)));
  if (own.length === 0 || version === undefined || device === undefined) return { models };
  const plans = new Map(own.map(({ label, plan }) => [label, plan]));
  const sorted = Object.fromEntries([...plans].sort(([a], [b]) => (a < b ? -1 : 1)));
  return { models, runtime: { name: "onnxruntime-node", version, ...device, threads, plans: sorted } };
}

/** A name that leads out of the folders, or that several files share, does not name a file. */
function orNone(find: () => ModelFile | undefined): ModelFile | undefined {
  try {
    return find();
  } catch (error) {
    if (error instanceof LatentkitError) return undefined;
    throw error;
  }
}
