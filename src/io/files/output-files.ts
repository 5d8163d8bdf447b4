import { join } from "node:path";
import { describe, LatentkitError } from "../../base/errors.js";
import type { PictureFormat } from "../pictures/format.js";
import type { RawImage } from "../png/raw-image.js";
import { counterName, type Ending, makeFolder, nextCounter, type OutputTarget } from "./output-path.js";
import { writeAppending, writeNew, writeReplacing } from "./write-file.js";

/** Writes the files of a run. */
export interface OutputFiles {
  /** Bytes are kept as they are, not written: the caller may not reuse their memory. */
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
  /** Writes the files. Default: under names with the next free counter. */
  readonly files?: OutputFiles;
  /** Makes the text "latentkit" of a file for its pixels. */
  readonly receipt?: (nodeId: string, picture: RawImage) => Promise<string | undefined>;
  /** Makes the text "parameters" of a file, the line of settings that A1111 writes. */
  readonly parameters?: (nodeId: string, size: { width: number; height: number }) => Promise<string | undefined>;
  /** Default: PNG files of 8 bits. */
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
  writeNew,
  writeReplacing,
  writeAppending,
};

/** Limit of all files of one render. */
const MAX_BYTES = 2 ** 31;

// An encoded file keeps its own memory, which moves from thread to thread; a text is copied out of Node's shared pool.
/** Keeps the files of one run under the names that an empty output folder would give them, and writes nothing. */
export class MemoryFiles implements OutputFiles {
  readonly keepsBytes = true;
  readonly #files = new Map<string, Uint8Array>();
  readonly #counters = new Map<string, bigint>();
  #bytes = 0;
  readonly #limit: number;

  constructor(limit = MAX_BYTES) {
    this.#limit = limit;
  }

  /** Content of a file by its path; undefined for a file that was written in another way. */
  bytesOf(path: string): Uint8Array | undefined {
    return this.#files.get(path);
  }

  async makeFolder(): Promise<void> {}

  async writeNumbered(folder: string, name: string, ending: Ending, bytes: Uint8Array): Promise<string> {
    const key = join(folder, name + ending);
    const first = this.#counters.get(key) ?? 1n;
    let counter = first;
    const filename = await this.writeNew(folder, bytes, (attempt) => {
      counter = first + BigInt(attempt);
      return `${counterName(name, counter)}${ending}`;
    });
    this.#counters.set(key, counter + 1n);
    return filename;
  }

  async writeNew(folder: string, bytes: Uint8Array, nameAt: (attempt: number) => string): Promise<string> {
    let attempt = 0;
    while (this.#files.has(join(folder, nameAt(attempt)))) attempt++;
    this.#put(folder, nameAt(attempt), bytes);
    return nameAt(attempt);
  }

  async writeReplacing(folder: string, name: string, bytes: Uint8Array): Promise<void> {
    this.#put(folder, name, bytes);
  }

  async writeAppending(folder: string, name: string, bytes: Uint8Array): Promise<void> {
    const before = this.#files.get(join(folder, name));
    this.#put(folder, name, before === undefined ? bytes : Buffer.concat([before, bytes]));
  }

  #put(folder: string, name: string, bytes: Uint8Array): void {
    const path = join(folder, name);
    const total = this.#bytes - (this.#files.get(path)?.length ?? 0) + bytes.length;
    if (total > this.#limit) {
      const message = `Cannot keep ${describe(name)} in memory: the files of one render may have ${this.#limit} bytes together; with this one they would have ${total}.`;
      throw new LatentkitError("file.write-failed", message);
    }
    this.#bytes = total;
    this.#files.set(path, owned(bytes));
  }
}

/** The bytes in memory of their own, which can move to another thread. */
export function owned(bytes: Uint8Array): Uint8Array {
  const { buffer, byteLength } = bytes;
  return byteLength === buffer.byteLength ? new Uint8Array(buffer) : Uint8Array.from(bytes);
}
