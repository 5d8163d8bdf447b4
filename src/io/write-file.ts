import { randomBytes } from "node:crypto";
import { constants, promises } from "node:fs";
import { join } from "node:path";
import { LatentkitError } from "../errors.js";

/** An open file, as far as writing needs it. */
export interface OpenFile {
  writeFile(bytes: Uint8Array): Promise<void>;
  sync(): Promise<void>;
  stat(): Promise<{ size: number }>;
  truncate(size: number): Promise<void>;
  close(): Promise<void>;
}

/** The calls that writing makes: Node's promises, or others' of the same meaning. */
export interface Disk {
  open(path: string, flags: string | number): Promise<OpenFile>;
  link(from: string, to: string): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  rm(path: string, options: { force: boolean }): Promise<void>;
}

/** Ends the names of files still being written; never the name of a result. */
export const TEMPORARY_SUFFIX = ".tmp";

/** Names tried before giving up: two processes that race need a few, a name pattern that never changes needs none. */
const MAX_ATTEMPTS = 100_000;

/** A file that keeps appearing and vanishing is not waited for. */
const MAX_APPEND_ATTEMPTS = 10;

/** File systems without hard links answer link() with one of these. */
const NO_HARD_LINKS: ReadonlySet<string> = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"]);

const REASONS: Readonly<Record<string, string>> = {
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota is used up",
  EACCES: "the folder may not be written",
  EPERM: "the folder may not be written",
  EROFS: "the file system is read-only",
  ENOENT: "the folder does not exist",
  ENOTDIR: "a part of the path is not a folder",
  ENAMETOOLONG: "the name is too long",
  EISDIR: "a folder has that name",
  ENOTEMPTY: "a folder has that name",
  ELOOP: "a symbolic link has that name",
  EEXIST: "the file comes and goes",
  EFBIG: "the file is too large for the file system",
  EMFILE: "too many files are open",
};

/**
 * Writes a new file under the first free name and never over another, also while other processes do the same:
 * temporary file, fsync, link, unlink. `nameAt(0)`, `nameAt(1)` … are the names to try, the folder exists.
 * Returns the name taken. Fails with file.write-failed and then leaves nothing behind.
 */
export async function writeNew(
  folder: string,
  bytes: Uint8Array,
  nameAt: (attempt: number) => string,
  disk: Disk = promises,
): Promise<string> {
  return withTemporary(folder, bytes, nameAt(0), disk, (temporary) => takeFirst(temporary, folder, nameAt, disk));
}

async function takeFirst(
  temporary: string,
  folder: string,
  nameAt: (attempt: number) => string,
  disk: Disk,
): Promise<string> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const name = nameAt(attempt);
    if (await takeName(temporary, join(folder, name), disk)) return name;
  }
  throw new LatentkitError(
    "file.write-failed",
    `Cannot write ${JSON.stringify(nameAt(0))}: expected a free name, received ${MAX_ATTEMPTS} taken ones.`,
  );
}

/**
 * The same as writeNew, with the temporary file's path given and left behind as a second link to the file: whoever
 * finds both knows whose the file is. Where a file system has no links nothing is left. The medium is not waited for:
 * a power failure soon after may leave less of the file.
 */
export async function writeKept(
  folder: string,
  bytes: Uint8Array,
  temporary: string,
  nameAt: (attempt: number) => string,
  disk: Disk = promises,
): Promise<string> {
  try {
    await writeWhole(temporary, bytes, disk, false);
    return await takeFirst(temporary, folder, nameAt, disk);
  } catch (error) {
    const failure = writeFailed(nameAt(0), error);
    // what went wrong first says more than that this fails too
    await disk.rm(temporary, { force: true }).catch(() => failure);
    throw failure;
  }
}

/**
 * Writes a file whole or not at all; one of that name is replaced in one step. The folder exists. `mark` stands in the
 * temporary file's name, so that whoever clears up after a kill knows it. Fails as writeNew.
 */
export async function writeReplacing(
  folder: string,
  name: string,
  bytes: Uint8Array,
  disk: Disk = promises,
  mark = "",
): Promise<void> {
  await withTemporary(folder, bytes, name, disk, (temporary) => disk.rename(temporary, join(folder, name)), mark);
}

/**
 * Adds to the end of a file, or makes it; what a failed write had added is taken off again. `mark` as for
 * writeReplacing. Fails as writeNew.
 */
export async function writeAppending(
  folder: string,
  name: string,
  bytes: Uint8Array,
  disk: Disk = promises,
  mark = "",
): Promise<void> {
  const path = join(folder, name);
  for (let attempt = 0; attempt < MAX_APPEND_ATTEMPTS; attempt++) {
    if (await appendExisting(path, name, bytes, disk)) return;
    // false: another process made the file since
    if (await withTemporary(folder, bytes, name, disk, (temporary) => takeName(temporary, path, disk), mark)) return;
  }
  throw writeFailed(name, { code: "EEXIST" });
}

async function withTemporary<T>(
  folder: string,
  bytes: Uint8Array,
  name: string,
  disk: Disk,
  publish: (temporary: string) => Promise<T>,
  mark = "",
): Promise<T> {
  const temporary = join(folder, `.latentkit-${mark}${randomBytes(12).toString("hex")}${TEMPORARY_SUFFIX}`);
  let failure: unknown;
  try {
    await writeWhole(temporary, bytes, disk, true);
    return await publish(temporary);
  } catch (error) {
    failure = writeFailed(name, error);
    throw failure;
  } finally {
    await disk.rm(temporary, { force: true }).catch((error: unknown) => {
      throw failure ?? writeFailed(name, error);
    });
  }
}

async function writeWhole(path: string, bytes: Uint8Array, disk: Disk, isSynced: boolean): Promise<void> {
  const file = await disk.open(path, "wx");
  try {
    await file.writeFile(bytes);
    if (isSynced) await file.sync();
  } finally {
    await file.close();
  }
}

/** Gives the finished file its name; false where the name is taken. */
async function takeName(temporary: string, path: string, disk: Disk): Promise<boolean> {
  try {
    await disk.link(temporary, path);
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    if (!NO_HARD_LINKS.has(codeOf(error))) throw error;
  }
  return claimName(temporary, path, disk);
}

/** Without hard links: the name is claimed by an empty file, which the finished one then replaces. */
async function claimName(temporary: string, path: string, disk: Disk): Promise<boolean> {
  try {
    await (await disk.open(path, "wx")).close();
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  }
  await disk.rename(temporary, path);
  return true;
}

/** False where there is no such file. A symbolic link is not followed: it may lead anywhere. */
async function appendExisting(path: string, name: string, bytes: Uint8Array, disk: Disk): Promise<boolean> {
  const flags = constants.O_WRONLY | constants.O_APPEND | (constants.O_NOFOLLOW ?? 0);
  try {
    const file = await disk.open(path, flags);
    try {
      const { size } = await file.stat();
      try {
        await file.writeFile(bytes);
        await file.sync();
      } catch (error) {
        await file.truncate(size);
        throw error;
      }
    } finally {
      await file.close();
    }
    return true;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return false;
    throw writeFailed(name, error);
  }
}

/** The one error for every reason a file could not be written. */
export function writeFailed(name: string, error: unknown): LatentkitError {
  if (error instanceof LatentkitError) return error;
  const code = codeOf(error);
  const reason = REASONS[code] ?? "the system refused";
  return new LatentkitError(
    "file.write-failed",
    `Cannot write ${JSON.stringify(name)}: ${reason} (${code}).`,
    {},
    { cause: error },
  );
}

const codeOf = (error: unknown): string => String((error as NodeJS.ErrnoException | null)?.code ?? error);
