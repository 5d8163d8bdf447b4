import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

/** The checkout, seen from build/test/helpers. */
export const root = fileURLToPath(new URL("../../../", import.meta.url));

/** A new empty folder for each test of the block, removed after it. Call inside `describe`. */
export function temporaryFolder(): () => string {
  let folder: string | undefined;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "latentkit-test-"));
  });
  // a run that the test has left may still write
  afterEach(() => rm(folder!, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }));
  return () => {
    if (folder === undefined) throw new Error("a temporary folder is there from the first test on, not in before()");
    return folder;
  };
}

/** A temporary folder for all tests of a suite, from before() on. */
export function suiteFolder(): () => string {
  let folder = "";
  before(() => {
    folder = mkdtempSync(join(tmpdir(), "latentkit-suite-"));
  });
  after(() => rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }));
  return () => folder;
}

/** Relative paths of all files and folders below a folder, with "/", sorted; folders end in "/". [] where it is absent. */
export function tree(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true, recursive: true })
      .map((entry) => {
        const path = relative(folder, join(entry.parentPath ?? entry.path, entry.name))
          .split(sep)
          .join("/");
        return entry.isDirectory() ? `${path}/` : path;
      })
      .sort();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

/** Relative paths of all files below a folder, sorted. */
export const filesIn = (folder: string): string[] => tree(folder).filter((path) => !path.endsWith("/"));

/** SHA-256 of each file below a folder by relative path. */
export function hashesIn(folder: string): Record<string, string> {
  return Object.fromEntries(filesIn(folder).map((name) => [name, sha256(readFileSync(join(folder, name)))]));
}

export const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
