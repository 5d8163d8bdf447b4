import { randomUUID } from "node:crypto";
import { type FileHandle, link, open, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { syncFile } from "../../../io/files/write-file.js";
import type { ByteHasher } from "../../../native/bindings.js";
import { loadNative } from "../../../native/load.js";
import { blobPath } from "../../agent/asset-references.js";
import { HookError } from "../hook-error.js";

/** Bytes that are hashed at once, in the event loop. */
const PIECE_BYTES = 64 * 1024;

/** Bytes of one upload on their way to the disk. */
export interface Upload {
  /** Number of bytes so far. */
  readonly size: number;
  write(bytes: Uint8Array): Promise<void>;
  /** Commits the bytes and returns their hash, and whether they are new. `expected` differs: hash_mismatch. */
  commit(expected?: string): Promise<{ hash: string; isNew: boolean }>;
  /** Removes what was written; harmless after `commit`. */
  discard(): Promise<void>;
}

/**
 * Begins an upload into a folder, below whose `blobs` it will stand under its hash. `count` is called with bytes that come
 * or, negative, go; it throws if there is not enough room for them.
 */
export async function beginUpload(folder: string, count: (bytes: number) => void): Promise<Upload> {
  const path = join(folder, "blobs", `.${randomUUID()}.tmp`);
  const hasher = loadNative().blake3();
  return new FileUpload(await open(path, "wx", 0o600), hasher, path, folder, count);
}

// BLAKE3 hashes as the bytes arrive, so an upload is read once.
class FileUpload implements Upload {
  readonly #handle: FileHandle;
  readonly #path: string;
  readonly #folder: string;
  readonly #count: (bytes: number) => void;
  readonly #hasher: ByteHasher;
  #isOpen = true;
  #isSettled = false;
  size = 0;

  constructor(handle: FileHandle, hasher: ByteHasher, path: string, folder: string, count: (bytes: number) => void) {
    this.#handle = handle;
    this.#hasher = hasher;
    this.#path = path;
    this.#folder = folder;
    this.#count = count;
  }

  async write(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
      const piece = bytes.subarray(at, at + PIECE_BYTES);
      this.#count(piece.length);
      this.#hasher.update(piece);
      this.size += piece.length;
      await inStorage(() => this.#handle.writeFile(piece));
    }
  }

  commit(expected?: string): Promise<{ hash: string; isNew: boolean }> {
    return inStorage(() => this.#commit(expected));
  }

  async #commit(expected: string | undefined): Promise<{ hash: string; isNew: boolean }> {
    const hash = `blake3:${this.#hasher.hex()}`;
    if (expected !== undefined && expected !== hash) {
      throw new HookError("hash_mismatch", `expected_hash: the uploaded file has hash ${hash}`, { details: { hash } });
    }
    await syncFile(this.#handle);
    await this.#close();
    const path = blobPath(this.#folder, hash)!;
    // of equal uploads at once one alone makes the link
    const isNew = await link(this.#path, path).then(
      () => true,
      (error: NodeJS.ErrnoException) => (error.code === "EEXIST" ? false : isAbsent(path)),
    );
    // over equal bytes as well: it makes them young; where both are links of one file, it changes nothing
    await rename(this.#path, path);
    await rm(this.#path, { force: true });
    this.#isSettled = true;
    if (!isNew) this.#count(-this.size);
    return { hash, isNew };
  }

  async discard(): Promise<void> {
    // a disk that fails is told of by what was to be written; what stays is swept
    await this.#close().catch(() => undefined);
    if (this.#isSettled) return;
    this.#isSettled = true;
    await rm(this.#path, { force: true }).catch(() => undefined);
    this.#count(-this.size);
  }

  async #close(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    await this.#handle.close();
  }
}

/** Whether bytes are new, on file systems without links. */
const isAbsent = async (path: string): Promise<boolean> => (await stat(path).catch(missing)) === undefined;

/** Undefined for the error of a file that is not there; throws any other. */
export function missing(error: NodeJS.ErrnoException): undefined {
  if (error.code === "ENOENT") return undefined;
  throw error;
}

const FULL: ReadonlySet<unknown> = new Set(["ENOSPC", "EDQUOT"]);
const FORBIDDEN: ReadonlySet<unknown> = new Set(["EROFS", "EACCES", "EPERM"]);

// A full disk is 507, any other failure of the folder 503: the request was right and the operator can help.
/** Does work in the folder of uploads. Fails with storage_full where the disk is, else with files_unavailable. */
export async function inStorage<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    const { code, syscall } = cause as NodeJS.ErrnoException;
    if (syscall === undefined) throw cause;
    if (FULL.has(code)) throw new HookError("storage_full", "the disk for uploads is full, try again later", { cause });
    const sentence = FORBIDDEN.has(code) ? "the service has no write permission for its upload folder" : undefined;
    throw new HookError("files_unavailable", sentence, { cause });
  }
}
