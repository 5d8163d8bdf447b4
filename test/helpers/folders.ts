import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A new empty folder for each test of the block, removed after it. Call inside `describe`. */
export function freshFolder(): () => string {
  let folder = "";
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "latentkit-"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));
  return () => folder;
}

/** Paths of all files below a folder, with "/", sorted; folders end in "/". [] where there is no such folder. */
export function tree(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true, recursive: true })
      .map((entry) => {
        const parent = entry.parentPath ?? entry.path;
        return join(parent, entry.name).slice(folder.length + 1) + (entry.isDirectory() ? "/" : "");
      })
      .sort();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

/** The same without the folders. */
export const files = (folder: string): string[] => tree(folder).filter((path) => !path.endsWith("/"));
