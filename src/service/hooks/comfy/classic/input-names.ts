import { createHash } from "node:crypto";
import { posix } from "node:path";
import { isPlainObject, keysInOrder } from "../../../../io/json/lossless.js";
import { reference } from "../../../agent/asset-references.js";
import { HookError } from "../../hook-error.js";
import type { RunFile } from "../../run.js";
import type { Asset } from "../asset-files.js";
import type { ComfyParts } from "../comfy-parts.js";
import type { Prompts } from "./prompts.js";

/** Most files that one graph may name. */
const MOST_FILES = 256;
const ANNOTATED = /^(.*) \[(input|output|temp)\]$/s;
/** Folder of a run's files, as its events tell it. */
const RUN_FOLDER = /^runs\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:\.\d+)?(?:\/|$)/;

/** Address of a file, as ComfyUI's clients name one. */
export interface FileAddress {
  readonly type: string;
  readonly subfolder: string;
  readonly filename: string;
}

/** The file behind an address: an upload, or a file of a prompt. */
export type NamedFile = { readonly asset: Asset } | { readonly file: RunFile };

// The id follows from the name, so a second upload replaces it; the stored graph refers to the bytes of its time.
/** Uploaded files and outputs by the names that graphs and clients have for them. */
export class InputNames {
  readonly #parts: Pick<ComfyParts, "assets" | "keepOutput" | "graphs">;
  readonly #prompts: Prompts;
  readonly #keepMs: number;
  /** Inputs for names of files, by class. */
  readonly #inputs = new Map<string, readonly string[]>();

  constructor(parts: Pick<ComfyParts, "assets" | "keepOutput" | "graphs">, prompts: Prompts, keepMs: number) {
    this.#parts = parts;
    this.#prompts = prompts;
    this.#keepMs = keepMs;
  }

  /** Returns undefined where there is no such file. */
  async find(address: FileAddress): Promise<NamedFile | undefined> {
    const { type, subfolder, filename } = address;
    const asset = await this.upload(address);
    if (asset !== undefined) return { asset };
    const runId = type === "input" ? undefined : RUN_FOLDER.exec(subfolder)?.[1];
    const file = runId === undefined ? undefined : await this.#prompts.file(runId, `${subfolder}/${filename}`);
    return file && { file };
  }

  /** Returns the upload under an address; undefined where there is none. */
  async upload(address: FileAddress): Promise<Asset | undefined> {
    const asset = await this.#parts.assets.find(idOf(address));
    return asset?.filePath === pathOf(address) ? asset : undefined;
  }

  /** Puts uploaded bytes under an address, in the place of others. */
  put(address: FileAddress, { hash, contentType }: Pick<Asset, "hash" | "contentType">): Promise<Asset> {
    const own = { id: idOf(address), hash, contentType, filePath: pathOf(address), tags: [] };
    return this.#parts.assets.add({ ...own, keepMs: this.#keepMs });
  }

  /** Puts references to uploads and outputs into a graph, in the place of their names. Other names are left to the input folder. */
  async resolve(graph: Readonly<Record<string, unknown>>): Promise<void> {
    const known = new Map<string, object | undefined>();
    for (const id of keysInOrder(graph)) {
      const node = graph[id];
      if (!isPlainObject(node) || !isPlainObject(node.inputs) || typeof node.class_type !== "string") continue;
      const { inputs } = node;
      for (const name of this.#fileInputs(node.class_type)) {
        const value = Object.hasOwn(inputs, name) ? inputs[name] : undefined;
        if (typeof value !== "string") continue;
        if (!known.has(value)) {
          if (known.size >= MOST_FILES) {
            throw new HookError("invalid_prompt", `the graph refers to more than ${MOST_FILES} files`);
          }
          known.set(value, await this.#reference(value));
        }
        inputs[name] = known.get(value) ?? value;
      }
    }
  }

  #fileInputs(classType: string): readonly string[] {
    const known = this.#inputs.get(classType);
    if (known !== undefined) return known;
    const description = this.#parts.graphs.describe(classType);
    if (description === undefined) return [];
    const inputs = Object.entries({ ...description.input.required, ...description.input.optional });
    const names = inputs.filter(([, [, options]]) => options.image_upload === true).map(([name]) => name);
    this.#inputs.set(classType, names);
    return names;
  }

  async #reference(name: string): Promise<object | undefined> {
    const { assets, keepOutput } = this.#parts;
    const address = addressOf(name);
    const found = address && (await this.find(address));
    if (address === undefined || found === undefined) return undefined;
    if ("file" in found) return reference({ file_name: name, hash: await keepOutput(found.file) });
    // used: kept from now on
    const { hash } = await this.put(address, found.asset);
    return (await assets.retain(hash)) ? reference({ file_name: name, hash }) : undefined;
  }
}

function addressOf(value: string): FileAddress | undefined {
  const [, path = value, type = "input"] = ANNOTATED.exec(value) ?? [];
  const slash = path.lastIndexOf("/");
  const [subfolder, filename] = [path.slice(0, Math.max(0, slash)), path.slice(slash + 1)];
  return isAddress(subfolder, filename) ? { type, subfolder, filename } : undefined;
}

/** Kinds of folders that requests name. */
export const FOLDERS = ["input", "output", "temp"] as const;

/** Whether texts are a folder and a name below a root. */
export function isAddress(subfolder: string, filename: string): boolean {
  const names = subfolder === "" ? [filename] : [...subfolder.split("/"), filename];
  return (
    subfolder.length <= 1024 &&
    !filename.includes("/") &&
    names.every((name) => name !== "" && name !== "." && name !== ".." && name.length <= 255 && isPrintable(name))
  );
}

const isPrintable = (name: string): boolean => !/[\p{Cc}\p{Cs}\\]/u.test(name);

const pathOf = ({ type, subfolder, filename }: FileAddress): string => `${type}:${posix.join(subfolder, filename)}`;

/** UUID v4 by its form, of the address alone: every front end finds the same upload. */
function idOf(address: FileAddress): string {
  const hex = createHash("sha256")
    .update(`latentkit upload\n${pathOf(address)}`)
    .digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
