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
export const ENTRY_NAME = /^[0-9a-f]{62}\.lkc$/;
export const TEMPORARY_NAME = /^\.latentkit-[0-9a-f]{24}\.tmp$/;

/** Path of the entry of a signature: `ab/cdef….lkc`. */
export const entryPath = (folder: string, signature: string): string =>
  join(folder, signature.slice(0, 2), `${signature.slice(2)}.lkc`);

/** "absent" includes files that cannot be read now; a "damaged" one never can. */
export type EntryBytes = Uint8Array | "absent" | "damaged";

/** Reads an entry without its hash, which is verified, into a buffer of its own. Marks the file as used. Never rejects. */
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
