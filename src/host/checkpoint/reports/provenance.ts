import { realpath } from "node:fs/promises";
import { LatentkitError } from "../../../base/errors.js";
import type { NamedModels, Provenance } from "../../host.js";
import type { FileHashes } from "../files/file-hashes.js";
import type { ModelFile, ModelFolders } from "../files/model-folders.js";
import type { Runtime } from "../session/runtime.js";
import { findEmbedding } from "../text-encoder/embeddings.js";
import { embeddingsOf } from "./prompt-warnings.js";

/** Everything from which a host knows how its pictures were made. */
export interface ProvenanceSource {
  readonly folders: ModelFolders;
  readonly hashes: Pick<FileHashes, "sha256">;
  readonly runtime: Pick<Runtime, "describe">;
}

/**
 * Returns the hashes of the model files that these names mean, and the runtime as far as networks of these files have run
 * in it. A file that cannot be found or read is left out: a branch that did not run may name it. Rejects with
 * the signal's reason.
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
  for (const word of new Set(texts.flatMap(embeddingsOf))) add(() => findEmbedding(folders, word).file);
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
