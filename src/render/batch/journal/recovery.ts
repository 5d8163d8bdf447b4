import type { Dirent } from "node:fs";
import { lstat, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { readTemporary } from "../../../io/files/item-files.js";

// decision 48
/**
 * Takes away what items of a batch left that did not come to their end: temporary files, and the published files that
 * are second links to them. Files of finished items stay and lose their second link. `isDone` takes the position of an
 * item; undefined leaves it alone. Returns the number of published files that were taken away.
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
    // the proof goes last: a kill in between leaves it for the next time
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
