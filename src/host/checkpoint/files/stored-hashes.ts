import { join } from "node:path";
import { cacheFolder } from "../../../base/cache-folder.js";
import { StoredTexts } from "../../../base/stored-texts.js";

const SHA256 = /^[0-9a-f]{64}$/;

/** Hashes of files in the user's cache folder, for later processes. */
export class StoredHashes {
  readonly #texts: StoredTexts;

  constructor(folder = join(cacheFolder(), "hashes")) {
    this.#texts = new StoredTexts(folder);
  }

  async get(key: string): Promise<string | undefined> {
    const text = await this.#texts.get(key);
    return text !== undefined && SHA256.test(text) ? text : undefined;
  }

  set(key: string, hash: string): Promise<void> {
    return this.#texts.set(key, hash);
  }
}
