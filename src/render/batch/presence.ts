import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { TEMPORARY } from "../../nodes/core/preview-image.js";

/** Tells of files below a folder, by paths with "/", whether they are there. */
export type Presence = (file: string) => Promise<boolean>;

/** Previews are nobody's result: whether they are there does not count. */
const PREVIEWS = `${TEMPORARY}/`;

/** Each folder is listed once: ten thousand files cost one call, on a network drive too. */
export function createPresence(root: string): Presence {
  const listed = new Map<string, Promise<ReadonlySet<string>>>();
  return async (file) => {
    if (file.startsWith(PREVIEWS)) return true;
    const folder = dirname(file);
    const names = listed.get(folder) ?? list(join(root, folder));
    listed.set(folder, names);
    return (await names).has(file.slice(folder === "." ? 0 : folder.length + 1));
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
