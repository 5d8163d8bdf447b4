import { constants, type Dirent } from "node:fs";
import { lstat, open, readdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { readTemporary } from "../../../io/files/item-files.js";
import { isWholePicture } from "../../../io/pictures/format.js";
import { TEMPORARY } from "../../../nodes/core/save-files.js";

// decisions: The journal is synced and pictures are not
/**
 * Removes the files of a batch's unfinished items: temporary files, and the published files that
 * are second links to them. Files of finished items stay and lose their second link. `isDone` takes the position of an
 * item; undefined leaves it alone. Returns the number of published files that were removed.
 */
export async function sweep(
  outputDir: string,
  batch: string,
  isDone: (position: number) => boolean | undefined,
): Promise<number> {
  let removed = 0;
  for (const [folder, entries] of await byFolder(outputDir)) {
    const temporaries = entries.filter((entry) => entry.isFile() && readTemporary(entry.name)?.batch === batch);
    const cut: string[] = [];
    for (const { name } of temporaries) {
      const { position, isProof } = readTemporary(name)!;
      const done = isDone(position);
      if (done === false && isProof) cut.push(join(folder, name));
      else if (done !== undefined) await rm(join(folder, name), { force: true });
    }
    const published = await linkedTo(cut, folder, entries);
    // the proof is removed last: a kill in between leaves it for the next time
    for (const path of [...published, ...cut]) await rm(path, { force: true });
    removed += published.length;
  }
  return removed;
}

async function byFolder(root: string): Promise<Map<string, Dirent[]>> {
  const folders = new Map<string, Dirent[]>();
  let entries: Dirent[];
  try {
    entries = await readdir(root, { recursive: true, withFileTypes: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return folders;
    throw error;
  }
  for (const entry of entries) {
    const folder = entry.parentPath ?? entry.path;
    const siblings = folders.get(folder);
    if (siblings === undefined) folders.set(folder, [entry]);
    else siblings.push(entry);
  }
  return folders;
}

/** Paths of the folder's published files that are links to one of these. */
async function linkedTo(temporaries: readonly string[], folder: string, entries: readonly Dirent[]): Promise<string[]> {
  const inodes = new Set<bigint>();
  for (const path of temporaries) {
    const { ino, nlink } = await lstat(path, { bigint: true });
    if (nlink > 1n) inodes.add(ino);
  }
  if (inodes.size === 0) return [];
  const links: string[] = [];
  for (const entry of entries) {
    if (!entry.isFile() || readTemporary(entry.name) !== undefined) continue;
    const path = join(folder, entry.name);
    if (inodes.has((await lstat(path, { bigint: true })).ino)) links.push(path);
  }
  return links;
}

/** State of a file since it was written; "cut": a picture whose end never reached the disk. */
export type FileState = "whole" | "cut" | "gone";

/** State of a file below a folder, named by its path with "/". */
export type Presence = (file: string) => Promise<FileState>;

/** Previews are not results: it does not matter whether they exist. */
const PREVIEWS = `${TEMPORARY}/`;

/** Lists each folder once and reads the ends of pictures: a power failure may lose data that was not synced. */
export function createPresence(root: string): Presence {
  const listed = new Map<string, Promise<ReadonlySet<string>>>();
  return async (file) => {
    if (file.startsWith(PREVIEWS)) return "whole";
    const folder = dirname(file);
    const names = listed.get(folder) ?? list(join(root, folder));
    listed.set(folder, names);
    if (!(await names).has(file.slice(folder === "." ? 0 : folder.length + 1))) return "gone";
    return (await isWhole(join(root, file))) ? "whole" : "cut";
  };
}

async function list(folder: string): Promise<ReadonlySet<string>> {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    return new Set(entries.filter((entry) => !entry.isDirectory()).map(({ name }) => name));
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOENT" || code === "ENOTDIR") return new Set();
    throw error;
  }
}

/** Whether a picture has its end; one that cannot be read, and any other file, is taken as whole. */
async function isWhole(path: string): Promise<boolean> {
  // without the flag, opening a pipe would wait
  const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);
  const file = await open(path, flags).catch(() => undefined);
  if (file === undefined) return true;
  try {
    const stats = await file.stat();
    if (!stats.isFile()) return true;
    return await isWholePicture(path, stats.size, async (at, length) => {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, at);
      return buffer.subarray(0, bytesRead);
    });
  } finally {
    await file.close();
  }
}
