import { createHash, randomBytes } from "node:crypto";
import { constants, promises } from "node:fs";
import { dirname, join } from "node:path";
import { makeEach } from "../../io/files/output-path.js";
import { TEMPORARY_SUFFIX } from "../../io/files/write-file.js";
import { HASH_BYTES, MIN_ENTRY_BYTES } from "./entry-format.js";

/** Bytes hashed and read or written at once: well below a millisecond, so that the event loop turns. */
const CHUNK = 2 ** 20;

// a link may lead anywhere, and a pipe would keep the reader waiting
const READ_FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/** Names of entries in their folder of two digits, and of temporary files. */
const ENTRY_NAME = /^[0-9a-f]{62}\.lkc$/;
const TEMPORARY_NAME = /^\.latentkit-[0-9a-f]{24}\.tmp$/;

/** Path of the entry of a signature: `ab/cdef….lkc`. */
export const entryPath = (folder: string, signature: string): string =>
  join(folder, signature.slice(0, 2), `${signature.slice(2)}.lkc`);

/** "absent" includes files that cannot be read now; a "damaged" one never can. */
type EntryBytes = Uint8Array | "absent" | "damaged";

/** Reads an entry without its hash, which is verified, into a new buffer. Marks the file as used. Never rejects. */
export async function readEntryFile(path: string, maxBytes: number): Promise<EntryBytes> {
  let file: promises.FileHandle;
  try {
    file = await promises.open(path, READ_FLAGS);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ELOOP" ? "damaged" : "absent";
  }
  try {
    const stat = await file.stat();
    if (!stat.isFile() || stat.size < MIN_ENTRY_BYTES || stat.size > maxBytes) return "damaged";
    const bytes = await readHashed(file, stat.size);
    const now = new Date();
    // fails for another user's file, or in a read-only folder
    if (bytes !== "damaged") await file.utimes(now, now).catch(() => undefined);
    return bytes;
  } catch {
    // a disk error, or not enough memory
    return "absent";
  } finally {
    await file.close().catch(() => undefined);
  }
}

async function readHashed(file: promises.FileHandle, size: number): Promise<EntryBytes> {
  const bytes = Buffer.allocUnsafeSlow(size);
  const end = size - HASH_BYTES;
  const hash = createHash("sha256");
  let [read, hashed] = [0, 0];
  while (read < size) {
    const { bytesRead } = await file.read(bytes, read, Math.min(CHUNK, size - read), read);
    if (bytesRead === 0) return "damaged";
    read += bytesRead;
    hash.update(bytes.subarray(hashed, Math.min(read, end)));
    hashed = Math.min(read, end);
  }
  return hash.digest().equals(bytes.subarray(end)) ? bytes.subarray(0, end) : "damaged";
}

/**
 * Writes the parts of an entry and their hash to a temporary file, then renames it. Without fsync: after a power failure
 * the hash shows whether an entry is whole. Rejects with the system's error and then leaves no file.
 */
export async function writeEntryFile(folder: string, path: string, parts: readonly Uint8Array[]): Promise<void> {
  const temporary = join(folder, `.latentkit-${randomBytes(12).toString("hex")}${TEMPORARY_SUFFIX}`);
  const open = () => promises.open(temporary, "wx");
  const file = await open().catch(async (error: unknown) => {
    if (!isMissing(error)) throw error;
    await makeEach(folder);
    return open();
  });
  try {
    try {
      await writeHashed(file, parts);
    } finally {
      await file.close();
    }
    const publish = () => promises.rename(temporary, path);
    await publish().catch(async (error: unknown) => {
      if (!isMissing(error)) throw error;
      await makeEach(dirname(path));
      await publish();
    });
  } catch (error) {
    // the first error is the one to report
    await promises.rm(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
}

async function writeHashed(file: promises.FileHandle, parts: readonly Uint8Array[]): Promise<void> {
  const hash = createHash("sha256");
  for (const part of parts) {
    for (let at = 0; at < part.length; at += CHUNK) {
      const chunk = part.subarray(at, at + CHUNK);
      hash.update(chunk);
      await writeAll(file, chunk);
    }
  }
  await writeAll(file, hash.digest());
}

async function writeAll(file: promises.FileHandle, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; ) at += (await file.write(bytes, at)).bytesWritten;
}

const isMissing = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === "ENOENT";

/** Size of the blocks that a file occupies. */
const BLOCK = 4096;
/** Share of the bound that eviction reaches, so that the next write does not evict again. */
const TARGET = 0.9;
/** Other processes write too: the folder is scanned again after this share of the bound, and after this time. */
const SHARE_BETWEEN_SCANS = 1 / 64;
const MS_BETWEEN_SCANS = 600_000;
/** Age from which a temporary file is that of a killed process. */
const TEMPORARY_MS = 3_600_000;
/** Files inspected at the same time. */
const AT_ONCE = 16;

interface CachedFile {
  readonly path: string;
  readonly bytes: number;
  readonly usedAt: number;
}

// Each process scans again after a 64th of the bound or ten minutes, so each exceeds it by a 64th at most.
// A folder that cannot be written is one warning; writing is tried again a minute later.
/**
 * Keeps a folder of entries below a number of bytes by evicting the least recently used. Several processes may do so at
 * once: each counts what it wrote since its last scan, so each exceeds the bound by a 64th at most.
 */
export class Bound {
  #bytes = Number.POSITIVE_INFINITY;
  #written = 0;
  #scannedAt = 0;
  #sweeping: Promise<void> | undefined;
  readonly #folder: string;
  readonly #limit: number;
  readonly #now: () => number;

  constructor(folder: string, limit: number, now: () => number) {
    this.#folder = folder;
    this.#limit = limit;
    this.#now = now;
  }

  /** Counts a written entry. */
  add(bytes: number): void {
    const size = inBlocks(bytes);
    this.#bytes += size;
    this.#written += size;
    const isDue =
      this.#bytes > this.#limit || this.#hasWrittenMuch() || this.#now() - this.#scannedAt > MS_BETWEEN_SCANS;
    if (!isDue || this.#sweeping !== undefined) return;
    this.#sweeping = this.#sweepAll().finally(() => {
      this.#sweeping = undefined;
    });
  }

  /** Resolves when no eviction is running. */
  async idle(): Promise<void> {
    await this.#sweeping;
  }

  #hasWrittenMuch(): boolean {
    return this.#written > this.#limit * SHARE_BETWEEN_SCANS;
  }

  async #sweepAll(): Promise<void> {
    do await this.#sweep();
    while (this.#hasWrittenMuch());
  }

  async #sweep(): Promise<void> {
    this.#written = 0;
    this.#scannedAt = this.#now();
    const files = await this.#scan();
    let total = files.reduce((sum, { bytes }) => sum + bytes, 0);
    if (total > this.#limit) {
      files.sort((a, b) => a.usedAt - b.usedAt);
      for (const { path, bytes } of files) {
        if (total <= this.#limit * TARGET) break;
        await remove(path);
        total -= bytes;
      }
    }
    // the scan may or may not have seen files written meanwhile
    this.#bytes = total + this.#written;
  }

  async #scan(): Promise<CachedFile[]> {
    const files: CachedFile[] = [];
    for (const name of await namesIn(this.#folder)) {
      if (TEMPORARY_NAME.test(name)) await this.#removeStale(join(this.#folder, name));
      if (!/^[0-9a-f]{2}$/.test(name)) continue;
      const shard = join(this.#folder, name);
      const paths = (await namesIn(shard)).filter((entry) => ENTRY_NAME.test(entry)).map((entry) => join(shard, entry));
      for (let at = 0; at < paths.length; at += AT_ONCE) {
        for (const entry of await Promise.all(paths.slice(at, at + AT_ONCE).map(statOf))) if (entry) files.push(entry);
      }
    }
    return files;
  }

  async #removeStale(path: string): Promise<void> {
    const file = await statOf(path);
    if (file !== undefined && this.#now() - file.usedAt > TEMPORARY_MS) await remove(path);
  }
}

const inBlocks = (bytes: number): number => Math.ceil(bytes / BLOCK) * BLOCK;

/** Another process may remove any file at any time, which is not an error. */
const nothing = () => undefined;

const namesIn = (folder: string): Promise<string[]> => promises.readdir(folder).catch((): string[] => []);

/** Removes a file if it exists and can be removed. */
export const remove = (path: string): Promise<void> => promises.rm(path, { force: true }).catch(nothing);

async function statOf(path: string): Promise<CachedFile | undefined> {
  const stat = await promises.lstat(path).catch(nothing);
  return stat && { path, bytes: inBlocks(stat.size), usedAt: stat.mtimeMs };
}
