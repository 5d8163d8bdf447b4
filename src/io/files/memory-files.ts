import { join } from "node:path";
import { describe, LatentkitError } from "../../base/errors.js";
import type { OutputFiles } from "./output-files.js";
import { counterName, type Ending } from "./output-path.js";

/** Bytes that the files of one render may have in all. */
const MAX_BYTES = 2 ** 31;

// decision 230
/** Keeps the files of one run under the names that an empty output folder would give them, and writes nothing. */
export class MemoryFiles implements OutputFiles {
  readonly keepsBytes = true;
  private readonly files = new Map<string, Uint8Array>();
  private readonly counters = new Map<string, bigint>();
  private bytes = 0;

  constructor(private readonly limit = MAX_BYTES) {}

  /** Content of a file by its path; undefined for a file that was written by other means. */
  bytesOf(path: string): Uint8Array | undefined {
    return this.files.get(path);
  }

  async makeFolder(): Promise<void> {}

  async writeNumbered(folder: string, name: string, ending: Ending, bytes: Uint8Array): Promise<string> {
    const key = join(folder, name + ending);
    const first = this.counters.get(key) ?? 1n;
    let counter = first;
    const filename = await this.writeNew(folder, bytes, (attempt) => {
      counter = first + BigInt(attempt);
      return `${counterName(name, counter)}${ending}`;
    });
    this.counters.set(key, counter + 1n);
    return filename;
  }

  async writeNew(folder: string, bytes: Uint8Array, nameAt: (attempt: number) => string): Promise<string> {
    let attempt = 0;
    while (this.files.has(join(folder, nameAt(attempt)))) attempt++;
    this.put(folder, nameAt(attempt), bytes);
    return nameAt(attempt);
  }

  async writeReplacing(folder: string, name: string, bytes: Uint8Array): Promise<void> {
    this.put(folder, name, bytes);
  }

  async writeAppending(folder: string, name: string, bytes: Uint8Array): Promise<void> {
    const before = this.files.get(join(folder, name));
    this.put(folder, name, before === undefined ? bytes : Buffer.concat([before, bytes]));
  }

  private put(folder: string, name: string, bytes: Uint8Array): void {
    const path = join(folder, name);
    const total = this.bytes - (this.files.get(path)?.length ?? 0) + bytes.length;
    if (total > this.limit) {
      const message = `Cannot keep ${describe(name)} in memory: expected files of at most ${this.limit} bytes in all, received ${total}.`;
      throw new LatentkitError("file.write-failed", message);
    }
    this.bytes = total;
    this.files.set(path, owned(bytes));
  }
}

/** The bytes in memory of their own, which can move to another thread. */
export function owned(bytes: Uint8Array): Uint8Array {
  const { buffer, byteLength } = bytes;
  return byteLength === buffer.byteLength ? new Uint8Array(buffer) : Uint8Array.from(bytes);
}
