import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  fdatasync,
  fstatSync,
  fsync,
  ftruncateSync,
  linkSync,
  openSync,
  promises,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { LatentkitError } from "../../base/errors.js";

/** Methods of an open file that writing uses. */
interface OpenFile {
  writeFile(bytes: Uint8Array): Promise<void>;
  sync(): Promise<void>;
  stat(): Promise<{ size: number }>;
  truncate(size: number): Promise<void>;
  close(): Promise<void>;
}

/** File system calls that writing uses: `freeDisk`, or equivalents. */
export interface Disk {
  open(path: string, flags: string | number): Promise<OpenFile>;
  link(from: string, to: string): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  rm(path: string, options: { force: boolean }): Promise<void>;
}

/** The files of Yarn's Plug'n'Play cannot sync; under Node's permission model only files can. */
const syncsByDescriptor = process.versions.pnp !== undefined;

const waitForDisk = promisify(fsync);

/** Resolves once a file is on the disk. */
export const syncFile = (file: promises.FileHandle): Promise<void> =>
  syncsByDescriptor ? waitForDisk(file.fd) : file.sync();

/** As `syncFile`, without times that reading does not need. */
export const syncData = (file: promises.FileHandle): Promise<void> =>
  syncsByDescriptor ? promisify(fdatasync)(file.fd) : file.datasync();

/** The disk by Node's promises. */
export const freeDisk: Disk = {
  ...promises,
  open: async (path, flags) => {
    const file = await promises.open(path, flags);
    return syncsByDescriptor ? Object.assign(file, { sync: () => syncFile(file) }) : file;
  },
};

/** End of the names of temporary files, never of a result. */
export const TEMPORARY_SUFFIX = ".tmp";

/** Number of names to try: racing processes need a few; a pattern that never changes must end. */
const MAX_ATTEMPTS = 100_000;

/** Number of attempts for a file that keeps appearing and vanishing. */
const MAX_APPEND_ATTEMPTS = 10;

/** Errors of link() on file systems without hard links. */
const NO_HARD_LINKS: ReadonlySet<string> = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"]);

const REASONS: Readonly<Record<string, string>> = {
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota is used up",
  EACCES: "no permission to write to the folder",
  EPERM: "no permission to write to the folder",
  EROFS: "the file system is read-only",
  ENOENT: "the folder does not exist",
  ENOTDIR: "a part of the path is not a folder",
  ENAMETOOLONG: "the name is too long",
  EISDIR: "a folder has that name",
  ENOTEMPTY: "a folder has that name",
  ELOOP: "a symbolic link has that name",
  EEXIST: "another process keeps creating and deleting the file",
  EFBIG: "the file is too large for the file system",
  EMFILE: "too many files are open",
};

/**
 * Writes a new file under the first free name and never over another, even while other processes do so:
 * temporary file, fsync, link, unlink. `nameAt(0)`, `nameAt(1)` … are the names to try; the folder exists.
 * Returns the name. Fails with file.write-failed and then leaves nothing behind.
 */
export async function writeNew(
  folder: string,
  bytes: Uint8Array,
  nameAt: (attempt: number) => string,
  disk: Disk = freeDisk,
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
  const message = `Cannot write ${JSON.stringify(nameAt(0))}: the first ${MAX_ATTEMPTS} names are taken.`;
  throw new LatentkitError("file.write-failed", message);
}

/**
 * Writes like writeNew, but leaves the temporary file, whose path the caller chooses, as a second link to the file, which
 * proves whose file it is; a file system without links leaves none. Without fsync: a power failure soon after may leave
 * less of the file.
 */
export async function writeLinked(
  folder: string,
  bytes: Uint8Array,
  temporary: string,
  nameAt: (attempt: number) => string,
  disk: Disk = freeDisk,
): Promise<string> {
  try {
    await writeWhole(temporary, bytes, disk, false);
    return await takeFirst(temporary, folder, nameAt, disk);
  } catch (error) {
    const failure = writeFailed(nameAt(0), error);
    // the first error is the one to report
    await disk.rm(temporary, { force: true }).catch(() => failure);
    throw failure;
  }
}

/**
 * Writes a file whole or not at all, replacing one of that name in one step. The folder exists. `mark` is part of the
 * temporary file's name, by which a clean-up after a kill recognises it. Fails as writeNew.
 */
export async function writeReplacing(
  folder: string,
  name: string,
  bytes: Uint8Array,
  disk: Disk = freeDisk,
  mark = "",
): Promise<void> {
  await withTemporary(folder, bytes, name, disk, (temporary) => disk.rename(temporary, join(folder, name)), mark);
}

/**
 * Appends to a file, which is created if missing; a failed write is undone. `mark` as for writeReplacing. Fails as
 * writeNew.
 */
export async function writeAppending(
  folder: string,
  name: string,
  bytes: Uint8Array,
  disk: Disk = freeDisk,
  mark = "",
): Promise<void> {
  const path = join(folder, name);
  for (let attempt = 0; attempt < MAX_APPEND_ATTEMPTS; attempt++) {
    if (await appendExisting(path, name, bytes, disk)) return;
    // false: another process has created the file since
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

/** Links the finished file to its name; false if the name is taken. */
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

/** Claims a name by an empty file, which the finished one replaces, on a file system without hard links. */
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

/** Appends to a file; false if there is none. A symbolic link is not followed: it may lead anywhere. */
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

/** Error of a file that could not be written, for any reason. */
export function writeFailed(name: string, error: unknown): LatentkitError {
  if (error instanceof LatentkitError) return error;
  const code = codeOf(error);
  const reason = REASONS[code] ?? "the system reported an error";
  // threads and workers send no cause
  const details = /^E[A-Z_]+$/.test(code) ? { systemCode: code } : {};
  const message = `Cannot write ${JSON.stringify(name)}: ${reason} (${code}).`;
  return new LatentkitError("file.write-failed", message, details, { cause: error });
}

/** Codes of a disk, quota or folder that takes no other file either. */
const LASTING: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT", "EROFS", "EACCES", "EPERM", "ERR_ACCESS_DENIED"]);

/** Whether a file could not be written for a reason that stops the next file as well. */
export const isOutputLost = (error: unknown): error is LatentkitError =>
  error instanceof LatentkitError && error.code === "file.write-failed" && LASTING.has(error.details.systemCode ?? "");

const codeOf = (error: unknown): string => String((error as NodeJS.ErrnoException | null)?.code ?? error);

/**
 * A disk for threads that only render: its calls block the thread, except fsync. A turn to Node's thread pool and back
 * costs more than each of them, and each picture takes six.
 */
export const blockingDisk: Disk = {
  open: async (path, flags) => {
    const descriptor = openSync(path, flags);
    return {
      writeFile: async (bytes) => writeFileSync(descriptor, bytes),
      sync: () => waitForDisk(descriptor),
      stat: async () => fstatSync(descriptor),
      truncate: async (size) => ftruncateSync(descriptor, size),
      close: async () => closeSync(descriptor),
    };
  },
  link: async (from, to) => linkSync(from, to),
  rename: async (from, to) => renameSync(from, to),
  rm: async (path, options) => rmSync(path, options),
};
