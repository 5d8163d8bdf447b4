import { type FileHandle, mkdir, open } from "node:fs/promises";
import { dirname } from "node:path";
import type { Readable } from "node:stream";
import type { CollectedWrite } from "../../io/files/collected-files.js";
import type { PackedWrite } from "./batch-message.js";

/** The file that holds the bytes of a run's writes, one after the other; created with the first of them. */
export class PackWriter {
  private handle: FileHandle | undefined;

  constructor(readonly path: string) {}

  get isEmpty(): boolean {
    return this.handle === undefined;
  }

  async add(writes: readonly CollectedWrite[]): Promise<PackedWrite[]> {
    const packed: PackedWrite[] = [];
    for (const { bytes, ...write } of writes) {
      if (this.handle === undefined) {
        await mkdir(dirname(this.path), { recursive: true });
        this.handle = await open(this.path, "wx");
      }
      await this.handle.writeFile(bytes);
      packed.push({ ...write, length: bytes.length });
    }
    return packed;
  }

  async close(): Promise<void> {
    await this.handle?.close();
  }
}

/** Reads a pack from its first byte to its last, a write at a time. */
export class PackReader {
  private readonly chunks: AsyncIterator<Buffer>;
  private rest: Buffer = Buffer.alloc(0);

  constructor(private readonly stream: Readable) {
    this.chunks = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  }

  /** Reads the bytes of the next write. Rejects where the pack is shorter, or cannot be read. */
  async take(length: number): Promise<Uint8Array> {
    const parts: Buffer[] = [];
    let missing = length;
    while (missing > 0) {
      if (this.rest.length === 0) {
        const { value, done } = await this.chunks.next();
        if (done) throw new Error("the file is too short");
        this.rest = value;
      }
      parts.push(this.rest.subarray(0, missing));
      missing -= parts.at(-1)!.length;
      this.rest = this.rest.subarray(parts.at(-1)!.length);
    }
    return Buffer.concat(parts, length);
  }

  close(): void {
    this.stream.destroy();
  }
}
