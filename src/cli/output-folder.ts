import { existsSync } from "node:fs";
import { mkdtemp, rmdir } from "node:fs/promises";
import { dirname, join } from "node:path";

/** Tries a write in a folder, or in the nearest folder above it that exists; leaves nothing behind. */
export async function tryFolder(folder: string): Promise<{ readonly isThere: boolean; readonly error?: unknown }> {
  let existing = folder;
  while (!existsSync(existing) && dirname(existing) !== existing) existing = dirname(existing);
  const isThere = existing === folder;
  try {
    await rmdir(await mkdtemp(join(existing, ".latentkit-")));
    return { isThere };
  } catch (error) {
    return { isThere, error };
  }
}
