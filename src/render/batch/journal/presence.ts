import { constants } from "node:fs";
import { open, readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isWholePicture } from "../../../io/pictures/whole.js";
import { TEMPORARY } from "../../../nodes/core/save-files.js";

/** State of a file since it was written; "cut": a picture whose end never reached the disk. */
export type FileState = "whole" | "cut" | "gone";

/** State of a file below a folder, named by its path with "/". */
export type Presence = (file: string) => Promise<FileState>;

/** Previews are no results: whether they are there does not count. */
const PREVIEWS = `${TEMPORARY}/`;

/** Lists each folder once and reads the ends of pictures, since a power failure may take what nobody waited for. */
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
