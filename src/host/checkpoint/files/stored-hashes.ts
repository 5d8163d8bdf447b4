import { createHash, randomUUID } from "node:crypto";
import { promises } from "node:fs";
import { join } from "node:path";
import { cacheFolder } from "../../../base/cache-folder.js";

const SHA256 = /^[0-9a-f]{64}$/;

/**
 * Hashes of files in the user's cache folder, one small file each, for later processes. A folder that cannot be read or
 * written costs hashing in each process, nothing else.
 */
export class StoredHashes {
  readonly #folder: string;

  constructor(folder = join(cacheFolder(), "hashes")) {
    this.#folder = folder;
  }

  async get(key: string): Promise<string | undefined> {
    try {
      const text = await promises.readFile(this.#path(key), "utf8");
      return SHA256.test(text) ? text : undefined;
    } catch {
      // absent or unreadable: the file is hashed again
      return undefined;
    }
  }

  async set(key: string, hash: string): Promise<void> {
    const temporary = join(this.#folder, `${randomUUID()}.tmp`);
    try {
      await promises.mkdir(this.#folder, { recursive: true, mode: 0o700 });
      await promises.writeFile(temporary, hash, { flag: "wx", mode: 0o600 });
      await promises.rename(temporary, this.#path(key));
    } catch {
      // the next process hashes the file again
      await promises.rm(temporary, { force: true }).catch(() => {});
    }
  }

  #path(key: string): string {
    return join(this.#folder, createHash("sha256").update(key).digest("hex").slice(0, 32));
  }
}
