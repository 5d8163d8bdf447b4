import type { PictureFormat } from "../pictures/format.js";
import type { RawImage } from "../raw-image.js";
import { counterName, type Ending, makeFolder, nextCounter, type OutputTarget } from "./output-path.js";
import { writeAppending, writeNew, writeReplacing } from "./write-file.js";

/** Writes the files of a run. */
export interface OutputFiles {
  /** Bytes are kept as they are, not written: nobody uses their memory again. */
  readonly keepsBytes?: boolean;
  /** Prepares the folder of the files that follow. Fails as `makeFolder`. */
  makeFolder(outputFolder: string, target: OutputTarget): Promise<void>;
  /**
   * Writes a new file whose name begins with `name` and ends with `ending`. Returns the name. The folder exists.
   * Fails with file.write-failed and then leaves nothing behind.
   */
  writeNumbered(folder: string, name: string, ending: Ending, bytes: Uint8Array): Promise<string>;
  /** Writes a new file under the first free of these names and returns it. Fails as writeNumbered. */
  writeNew(folder: string, bytes: Uint8Array, nameAt: (attempt: number) => string): Promise<string>;
  /** Writes a file in one step, replacing one of this name. Fails as writeNumbered. */
  writeReplacing(folder: string, name: string, bytes: Uint8Array): Promise<void>;
  /** Appends to a file, which is created if missing. Fails as writeNumbered. */
  writeAppending(folder: string, name: string, bytes: Uint8Array): Promise<void>;
}

/** Settings of a run for nodes that save images. */
export interface OutputHandling {
  /** Writes the files; names with the next free counter where absent. */
  readonly files?: OutputFiles;
  /** Makes the text "latentkit" of a file for its pixels. */
  readonly receipt?: (nodeId: string, picture: RawImage) => Promise<string | undefined>;
  /** Makes the text "parameters" of a file, the line of settings that A1111 writes; none where absent. */
  readonly parameters?: (nodeId: string, size: { width: number; height: number }) => Promise<string | undefined>;
  /** PNG files of 8 bits where absent. */
  readonly format?: PictureFormat;
}

/** Writes files under ComfyUI's names: `<name>_<counter>`, one more than the highest counter in the folder. */
export const counterFiles: OutputFiles = {
  makeFolder,
  writeNumbered: async (folder, name, ending, bytes) => {
    const counter = await nextCounter(folder, name, ending);
    const nameAt = (attempt: number) => `${counterName(name, counter + BigInt(attempt))}${ending}`;
    return writeNew(folder, bytes, nameAt);
  },
  writeNew: (folder, bytes, nameAt) => writeNew(folder, bytes, nameAt),
  writeReplacing: (folder, name, bytes) => writeReplacing(folder, name, bytes),
  writeAppending: (folder, name, bytes) => writeAppending(folder, name, bytes),
};
