import { stat } from "node:fs/promises";
import { KIND_FOLDERS, type ModelKind } from "../files/kinds.js";
import { type ModelFile, ModelFolders } from "../files/model-folders.js";
import { quotedName } from "../weights/stored.js";
import { HeaderReader, stateKey, within } from "./header-reader.js";
import { describeFile, type ListedModel } from "./list-models.js";

const KINDS = Object.keys(KIND_FOLDERS) as ModelKind[];

/** A list of the model files below folders, whose headers a thread reads. */
export class ModelListing {
  readonly #folders: ModelFolders;
  readonly #headers = new HeaderReader();

  /** Throws config.invalid for folders that do not exist. */
  constructor(models: readonly string[]) {
    this.#folders = new ModelFolders(models);
  }

  /** Lists files by kind and name within a second or so; those that have not been read by then say so. */
  async list(): Promise<{ readonly models: readonly ListedModel[]; readonly isComplete: boolean }> {
    const files = KINDS.flatMap((kind) => this.#folders.files(kind));
    const isComplete = await within(this.#headers.read(files));
    const models: ListedModel[] = [];
    for (const file of files) models.push(await this.#listed(file));
    return { models, isComplete };
  }

  async #listed(file: ModelFile): Promise<ListedModel> {
    const { kind, name, path } = file;
    const stats = await stat(path, { bigint: true }).catch(() => undefined);
    // a folder of diffusers
    if (stats !== undefined && !stats.isFile()) return describeFile(file);
    const read = stats && this.#headers.get(stateKey(file, stats));
    if (read !== undefined) return { ...read.listed, bytes: Number(stats!.size) };
    const refusal = `Model ${quotedName(name)} has not been read yet: look again.`;
    return { kind, name, path, bytes: Number(stats?.size ?? 0n), dtypes: [], refusal };
  }
}
