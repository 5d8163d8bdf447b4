import { type Dirent, existsSync, readdirSync, realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import { LatentkitError } from "../../../base/errors.js";

/** Endings of model files. Those of formats that are never loaded are listed too, so that they are refused by name. */
const ENDINGS = [".safetensors", ".sft", ".ckpt", ".pt", ".pth", ".bin", ".gguf"];

/** File that makes a folder a model of diffusers. */
export const MODEL_INDEX = "model_index.json";

const MAX_DEPTH = 32;
const MAX_FOLDERS = 20_000;
const MAX_FILES = 100_000;

/** Errors of files and folders that come and go, lead nowhere, or belong to others, as lost+found does. */
const PASSED_OVER: ReadonlySet<string | undefined> = new Set(["ENOENT", "ENOTDIR", "EACCES", "EPERM", "ELOOP"]);

/** Model files below a folder, and the state of the folders that hold them. */
export interface Listing {
  /** Relative to the folder, with "/". */
  readonly names: readonly string[];
  /** Time of the last change of each folder in nanoseconds since 1970, by its path; undefined if it is absent. */
  readonly folders: ReadonlyMap<string, bigint | undefined>;
}

interface OpenFolder {
  /** Path without links. */
  readonly path: string;
  /** Relative name with "/" at its end; "" for the folder itself. */
  readonly prefix: string;
  readonly parent?: OpenFolder;
  readonly depth: number;
}

/**
 * Lists the model files below a folder, 32 folders deep. Follows links, except to a folder that contains them; leaves
 * out names that begin with a dot. An absent folder counts as empty. Throws value.out-of-range for more than a hundred
 * thousand files or twenty thousand folders, file.read-failed if the disk fails. With `asModels` a folder of diffusers
 * is one model, under its own name.
 */
export function listFolder(folder: string, { asModels = false }: { readonly asModels?: boolean } = {}): Listing {
  const names: string[] = [];
  const folders = new Map<string, bigint | undefined>([[folder, undefined]]);
  const pending: OpenFolder[] = [];
  let count = 0;
  const open = (path: string, prefix: string, parent?: OpenFolder): void => {
    const real = passOver(path, () => realpathSync.native(path));
    const changed = real === undefined ? undefined : changeOf(real);
    if (real === undefined || changed === undefined) return;
    const depth = parent === undefined ? 0 : parent.depth + 1;
    if (depth > MAX_DEPTH || isInside(real, parent)) return;
    if (++count > MAX_FOLDERS) throw tooMany(folder, `${MAX_FOLDERS} folders`);
    folders.set(parent === undefined ? path : real, changed);
    pending.push({ path: real, prefix, parent, depth });
  };
  open(folder, "");
  for (let current = pending.pop(); current !== undefined; current = pending.pop()) {
    const { path, prefix } = current;
    for (const entry of passOver(path, () => readdirSync(path, { withFileTypes: true })) ?? []) {
      if (entry.name.startsWith(".")) continue;
      const entryPath = join(path, entry.name);
      const type = typeOf(entry, entryPath);
      const isModel = asModels && type === "folder" && existsSync(join(entryPath, MODEL_INDEX));
      if (type === "folder" && !isModel) open(entryPath, `${prefix}${entry.name}/`, current);
      if (isModel || (type === "file" && hasEnding(entry.name))) names.push(prefix + entry.name);
      if (names.length > MAX_FILES) throw tooMany(folder, `${MAX_FILES} files`);
    }
  }
  return { names, folders };
}

/** Whether a listing still holds: no folder in it has changed. */
export function isCurrent({ folders }: Listing): boolean {
  for (const [path, changed] of folders) if (changeOf(path) !== changed) return false;
  return true;
}

/** Time of a folder's last change; undefined for anything else. */
function changeOf(path: string): bigint | undefined {
  const stats = passOver(path, () => statSync(path, { bigint: true }));
  return stats?.isDirectory() ? stats.mtimeNs : undefined;
}

const hasEnding = (name: string): boolean => {
  const lower = name.toLowerCase();
  return ENDINGS.some((ending) => lower.endsWith(ending));
};

function typeOf(entry: Dirent, path: string): "file" | "folder" | undefined {
  // a link has the type of its target
  const target = entry.isSymbolicLink() ? passOver(path, () => statSync(path)) : entry;
  if (target?.isDirectory()) return "folder";
  return target?.isFile() ? "file" : undefined;
}

function isInside(real: string, parent: OpenFolder | undefined): boolean {
  for (let outer = parent; outer !== undefined; outer = outer.parent) if (outer.path === real) return true;
  return false;
}

function passOver<T>(path: string, read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (PASSED_OVER.has(code)) return undefined;
    const message = `Models: folder ${path} cannot be read (${code}).`;
    throw new LatentkitError("file.read-failed", message, {}, { cause: error });
  }
}

const tooMany = (folder: string, most: string): LatentkitError =>
  new LatentkitError("value.out-of-range", `Models: expected at most ${most} below ${folder}.`);
