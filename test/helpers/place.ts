import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

/** The checkout, from build/test/helpers. */
export const root = fileURLToPath(new URL("../../../", import.meta.url));

/** A fresh folder for each test of a suite, removed afterwards. */
export function temporaryFolder(): () => string {
  let folder = "";
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "latentkit-test-"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));
  return () => folder;
}

/** Files below a folder by relative path, sorted. */
export function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) =>
      relative(folder, join(entry.parentPath ?? entry.path, entry.name))
        .split(sep)
        .join("/"),
    )
    .sort();
}

/** SHA-256 of each file below a folder by relative path. */
export function hashesIn(folder: string): Record<string, string> {
  return Object.fromEntries(filesIn(folder).map((name) => [name, sha256(readFileSync(join(folder, name)))]));
}

export const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
