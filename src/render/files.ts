import { join } from "node:path";
import { TEMPORARY } from "../nodes/core/save-files.js";

/** A file that a run wrote. */
export interface RenderedFile {
  /** Absolute; of a file in memory where it would be. */
  readonly path: string;
  readonly filename: string;
  /** Folder below the root of its type, with "/" between names; "" for the root. */
  readonly subfolder: string;
  /** "output", or "temp" for previews. */
  readonly type: string;
  /** Content of a file that was not written: with `output: "memory"`. */
  readonly bytes?: Uint8Array;
}

/** A file by its path below the output folder, with "/". */
export function fileAt(path: string, outputDir: string): RenderedFile {
  const isTemporary = path.startsWith(`${TEMPORARY}/`);
  const names = path.split("/").slice(isTemporary ? 1 : 0);
  const filename = names.pop()!;
  return {
    path: join(outputDir, path),
    filename,
    subfolder: names.join("/"),
    type: isTemporary ? TEMPORARY : "output",
  };
}

/** Files named in a node's UI result: every entry that has a filename, whatever list it stands in. */
export function filesOf(ui: Readonly<Record<string, readonly unknown[]>>, outputDir: string): RenderedFile[] {
  const files: RenderedFile[] = [];
  for (const entry of Object.values(ui).flat()) {
    const { filename, subfolder = "", type = "output" } = (entry ?? {}) as Record<string, unknown>;
    if (typeof filename !== "string" || typeof subfolder !== "string" || typeof type !== "string") continue;
    files.push({
      path: join(outputDir, type === TEMPORARY ? TEMPORARY : "", subfolder, filename),
      filename,
      subfolder,
      type,
    });
  }
  return files;
}
