import { randomUUID } from "node:crypto";
import {
  type FileHandle,
  link,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  unlink,
  utimes,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";
import { syncFile } from "../../../io/files/write-file.js";
import type { ByteHasher } from "../../../native/bindings.js";
import { loadNative } from "../../../native/load.js";
import { blobPath } from "../../agent/asset-references.js";
import { HookError } from "../hook-error.js";

const SWEEP_MS = 60_000;
/** Bytes that are hashed at once, in the event loop. */
const PIECE_BYTES = 64 * 1024;
/** A sweep reads the name of each. */
const MOST_ASSETS = 10_000;
const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** A name for uploaded bytes. Times are ms. */
export interface Asset {
  readonly id: string;
  /** "blake3:…" */
  readonly hash: string;
  readonly size: number;
  readonly contentType: string;
  readonly filePath: string | null;
  readonly tags: readonly string[];
  readonly createdAt: number;
  readonly expiresAt: number;
}

export type NewAsset = Pick<Asset, "hash" | "contentType" | "filePath" | "tags"> & {
  readonly keepMs: number;
  /** UUID v4; another asset of this id is replaced. Default: a random one. */
  readonly id?: string;
};

export interface AssetFilesOptions {
  /** A folder that all front ends and workers share. */
  readonly folder: string;
  /** Most bytes of all assets. */
  readonly mostBytes: number;
  /** Default: 10,000. */
  readonly mostAssets?: number;
  /** Time for which bytes without an asset stay, since jobs may refer to them. */
  readonly graceMs: number;
  readonly now: () => number;
}

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

// Files and renames are the only transaction: processes share the folder, and the sweep leaves young bytes alone.
// BLAKE3 hashes as the bytes arrive, so an upload is read once.
/**
 * Uploaded bytes, each once under its hash, and the assets that name them: files in one folder. What writes there fails
 * with storage_full where the disk is full, and with files_unavailable where the folder may not be written.
 */
export class AssetFiles {
  readonly #options: AssetFilesOptions;
  #sweptAt = Number.NEGATIVE_INFINITY;
  #sweeping: Promise<void> | undefined;
  #bytes = 0;
  #names = 0;

  constructor(options: AssetFilesOptions) {
    this.#options = options;
  }

  get folder(): string {
    return this.#options.folder;
  }

  begin(): Promise<Upload> {
    return inStorage(async () => {
      await this.#sweep();
      const path = join(this.folder, "blobs", `.${randomUUID()}.tmp`);
      const hasher = loadNative().blake3();
      const handle = await open(path, "wx", 0o600);
      return new FileUpload(handle, hasher, path, this.folder, (bytes) => this.#count(bytes));
    });
  }

  /** Uploads bytes. Returns their hash. */
  async keep(chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<string> {
    const upload = await this.begin();
    try {
      for await (const chunk of chunks) await upload.write(chunk);
      return (await upload.commit()).hash;
    } finally {
      await upload.discard();
    }
  }

  /** Size of the bytes of a hash; undefined if they were not uploaded. */
  async sizeOf(hash: string): Promise<number | undefined> {
    const path = blobPath(this.folder, hash);
    return path === undefined ? undefined : (await stat(path).catch(missing))?.size;
  }

  /** Path of the bytes of a hash; undefined where they are gone. */
  async pathOf(hash: string): Promise<string | undefined> {
    return (await this.sizeOf(hash)) === undefined ? undefined : blobPath(this.folder, hash);
  }

  /** Makes bytes young, so that they stay as long as a job may need them. Returns whether they are there. */
  async retain(hash: string): Promise<boolean> {
    const path = blobPath(this.folder, hash);
    if (path === undefined) return false;
    const seconds = this.#options.now() / 1000;
    await inStorage(() => utimes(path, seconds, seconds).catch(missing));
    return (await this.sizeOf(hash)) !== undefined;
  }

  /** Names bytes that are there. Fails with blob_not_found and storage_full. */
  add(asset: NewAsset): Promise<Asset> {
    return inStorage(() => this.#add(asset));
  }

  async #add({ keepMs, id = randomUUID(), ...asset }: NewAsset): Promise<Asset> {
    await this.retain(asset.hash);
    await this.#sweep();
    const path = this.#nameOf(id);
    const isNew = (await stat(path).catch(missing)) === undefined;
    if (isNew && this.#names >= (this.#options.mostAssets ?? MOST_ASSETS)) {
      throw new HookError("storage_full", "there are too many assets, try again later");
    }
    const size = await this.sizeOf(asset.hash);
    if (size === undefined) throw new HookError("blob_not_found");
    const createdAt = this.#options.now();
    const added: Asset = { id, ...asset, size, createdAt, expiresAt: createdAt + keepMs };
    const temporary = `${path}.${randomUUID()}.tmp`;
    try {
      await writeFile(temporary, JSON.stringify(added), { mode: 0o600, flag: "wx" });
      await rename(temporary, path);
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
    if (isNew) this.#names += 1;
    return added;
  }

  async find(id: string): Promise<Asset | undefined> {
    if (!ID.test(id)) return undefined;
    const text = await readFile(this.#nameOf(id), "utf8").catch(missing);
    const asset = text === undefined ? undefined : (JSON.parse(text) as Asset);
    return asset === undefined || asset.expiresAt <= this.#options.now() ? undefined : asset;
  }

  /** Removes an asset; its bytes stay for a while. */
  async remove(id: string): Promise<void> {
    const removed = () => {
      this.#names -= 1;
    };
    // of two at once, rm would count both
    await inStorage(() => unlink(this.#nameOf(id)).then(removed, missing));
  }

  #nameOf(id: string): string {
    return join(this.folder, "names", `${id}.json`);
  }

  /** Counts bytes that come or, negative, go. Fails with storage_full. */
  #count(bytes: number): void {
    if (bytes > 0 && this.#bytes + bytes > this.#options.mostBytes) {
      throw new HookError("storage_full", "the space for uploads is full, try again later");
    }
    this.#bytes += bytes;
  }

  /** Sweeps once a minute; uploads wait for it. */
  async #sweep(): Promise<void> {
    const now = this.#options.now();
    if (now - this.#sweptAt >= SWEEP_MS) {
      this.#sweptAt = now;
      this.#sweeping = this.#sweepAll().catch((error: unknown) => {
        this.#sweptAt = Number.NEGATIVE_INFINITY;
        throw error;
      });
    }
    await this.#sweeping;
  }

  /** Removes expired assets, and bytes that no asset and no job needs; counts the rest. */
  async #sweepAll(): Promise<void> {
    const [names, blobs] = [join(this.folder, "names"), join(this.folder, "blobs")];
    await mkdir(names, { recursive: true, mode: 0o700 });
    await mkdir(blobs, { recursive: true, mode: 0o700 });
    const used = new Set<string>();
    let count = 0;
    for (const name of await readdir(names)) {
      const asset = await this.find(name.replace(/\.json$/, ""));
      if (asset !== undefined) {
        used.add(asset.hash);
        count += 1;
      } else if (await this.#isOld(join(names, name))) await rm(join(names, name), { force: true });
    }
    let bytes = 0;
    for (const name of await readdir(blobs)) {
      const path = join(blobs, name);
      if (!used.has(`blake3:${name}`) && (await this.#isOld(path))) await rm(path, { force: true });
      else bytes += (await stat(path).catch(missing))?.size ?? 0;
    }
    this.#bytes = bytes;
    this.#names = count;
  }

  async #isOld(path: string): Promise<boolean> {
    const { mtimeMs = 0 } = (await stat(path).catch(missing)) ?? {};
    return mtimeMs < this.#options.now() - this.#options.graceMs;
  }
}

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

function missing(error: NodeJS.ErrnoException): undefined {
  if (error.code === "ENOENT") return undefined;
  throw error;
}

const FULL: ReadonlySet<unknown> = new Set(["ENOSPC", "EDQUOT"]);
const FORBIDDEN: ReadonlySet<unknown> = new Set(["EROFS", "EACCES", "EPERM"]);

// A full disk is 507, any other failure of the folder 503: the request was right and the operator can help.
/** Does work in the folder of uploads. Fails with storage_full where the disk is, else with files_unavailable. */
async function inStorage<T>(work: () => Promise<T>): Promise<T> {
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
