import { constants } from "node:fs";
import { type FileHandle, lstat, open, realpath, unlink } from "node:fs/promises";
import { sep } from "node:path";
import { Readable } from "node:stream";
import { hasMethods, type Rule } from "../../../base/options.js";
import { HookError } from "../hook-error.js";
import type { RunFile } from "../run.js";

/** Rule of an option that takes a file store. */
export const FILE_STORE: Rule = [
  "a store of files, as createS3Files makes one",
  (value) => hasMethods(value, "put", "open"),
];

/** A file of a run, opened for one reader. */
export interface OpenedFile {
  readonly size: number;
  readonly etag: string | undefined;
  readonly modified: Date;
  /** Reads `size` bytes: a file of this machine as often as it is called. The stream fails where the file has become shorter. */
  read(): Readable;
  close(): Promise<void>;
}

/** Keeper of the files that runs report. A service has one; every process that serves its runs must reach the same. */
export interface FileStore {
  /**
   * Stores a reported file before any reader learns of it, whole or not at all. Returns the file with the path under which
   * `open` finds it, which is committed with the run's events: a file that was never committed is never served. Fails with
   * file.write-failed, and with the reason of `signal`.
   */
  put(runId: string, file: RunFile, signal: AbortSignal): Promise<RunFile>;
  /** Opens a stored file; for `headOnly`, `read` is not called. Fails with HookError not_found or files_unavailable. */
  open(file: RunFile, options: { readonly headOnly: boolean }): Promise<OpenedFile>;
  /** Removes what a start of a run left on this machine; `attempt`: its number as its agent got it, 1 for the first. */
  tidy?(runId: string, attempt?: number): Promise<void>;
}

/** Flags that Windows lacks. Without O_NONBLOCK, opening a FIFO would block. */
const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants as Partial<typeof constants>;
const CHUNK_BYTES = 64 * 1024;
const GONE = ["ENOENT", "ENOTDIR", "ELOOP", "EACCES", "EPERM", "ENXIO"];

/** Files that stay where the agent wrote them: in a folder of this machine, or in one that all machines share. */
export const localFiles: FileStore = {
  put: async (_runId, file) => file,
  open: ({ path }) => openLocalFile(path),
};

/** Opens a reported file, which only counts up to its present end. Fails with HookError not_found. */
export async function openLocalFile(path: string): Promise<OpenedFile> {
  const handle = await openReported(path);
  try {
    const { size, mtimeMs, mtime } = await handle.stat();
    return {
      size,
      etag: `W/"${size.toString(16)}-${Math.floor(mtimeMs).toString(16)}"`,
      modified: mtime,
      // the length has been told: bytes appended meanwhile are left out
      read: () => Readable.from(chunksOf(handle, size), { objectMode: false }),
      close: () => handle.close(),
    };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Reads a file from its first byte. A stream of Node's own would close the file when it is destroyed. */
async function* chunksOf(handle: FileHandle, size: number): AsyncGenerator<Buffer, void, undefined> {
  for (let at = 0; at < size; ) {
    const length = Math.min(CHUNK_BYTES, size - at);
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(length), 0, length, at);
    if (bytesRead === 0) throw new Error("the file has become shorter");
    yield buffer.subarray(0, bytesRead);
    at += bytesRead;
  }
}

/**
 * Opens the reported file itself: refuses a link at its path, and at the path of any folder above it. The opened file is
 * compared with the one at the path, so a link that appears and disappears meanwhile gains nothing.
 */
async function openReported(path: string): Promise<FileHandle> {
  const handle = await open(path, O_RDONLY! | O_NOFOLLOW | O_NONBLOCK).catch((error: NodeJS.ErrnoException) => {
    throw GONE.includes(error.code ?? "") ? gone() : error;
  });
  try {
    const opened = await handle.stat({ bigint: true });
    if (!opened.isFile() || (await realpath(path).catch(() => undefined)) !== path) throw gone();
    const atPath = await lstat(path, { bigint: true }).catch(() => undefined);
    if (atPath?.ino !== opened.ino || atPath.dev !== opened.dev) throw gone();
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/**
 * Removes a reported file below a folder; one that is not there any more is no failure. Fails with HookError not_found for
 * a file elsewhere, a link, and one that a link leads to, and with files_unavailable.
 */
export async function removeLocalFile(path: string, folder: string): Promise<void> {
  try {
    const found = await lstat(path);
    const isOwn = found.isFile() && (await realpath(path)) === path;
    if (!isOwn || !path.startsWith((await realpath(folder)) + sep)) {
      throw new HookError("not_found", "the file is not in the service's output folder");
    }
    await unlink(path);
  } catch (cause) {
    if (cause instanceof HookError) throw cause;
    if (["ENOENT", "ENOTDIR"].includes((cause as NodeJS.ErrnoException).code ?? "")) return;
    throw new HookError("files_unavailable", undefined, { cause });
  }
}

/** The refusal of a file that is not there any more. */
export const gone = () => new HookError("not_found", "the file is gone");
