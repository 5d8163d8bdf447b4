import { randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, stat, unlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { blobPath } from "../../agent/asset-references.js";
import { HookError } from "../hook-error.js";
import { beginUpload, inStorage, missing, type Upload } from "./asset-upload.js";

const SWEEP_MS = 60_000;
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

// Files and renames are the only transaction: processes share the folder, and the sweep leaves young bytes alone.
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
      return await beginUpload(this.folder, (bytes) => this.#count(bytes));
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
