import { randomUUID } from "node:crypto";
import { promises } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { sha256 } from "./bytes.js";

/** Folder of results that later runs of this user may use: LATENTKIT_CACHE_DIR, else `latentkit` in the user's caches. */
export function cacheFolder(): string {
  const { LATENTKIT_CACHE_DIR, XDG_CACHE_HOME } = process.env;
  if (LATENTKIT_CACHE_DIR) return LATENTKIT_CACHE_DIR;
  // a relative path counts as absent, as the specification has it
  const caches = XDG_CACHE_HOME && isAbsolute(XDG_CACHE_HOME) ? XDG_CACHE_HOME : join(homedir(), ".cache");
  return join(caches, "latentkit");
}

/**
 * Texts by key in a folder of caches, one small file each, for later processes. If the folder cannot be read or written,
 * the texts are made again each time.
 */
export class StoredTexts {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async get(key: string): Promise<string | undefined> {
    try {
      return await promises.readFile(this.#path(key), "utf8");
    } catch {
      // absent or unreadable: made again
      return undefined;
    }
  }

  async set(key: string, text: string): Promise<void> {
    const temporary = join(this.#folder, `${randomUUID()}.tmp`);
    try {
      await promises.mkdir(this.#folder, { recursive: true, mode: 0o700 });
      await promises.writeFile(temporary, text, { flag: "wx", mode: 0o600 });
      await promises.rename(temporary, this.#path(key));
    } catch {
      // the next process makes it again
      await promises.rm(temporary, { force: true }).catch(() => {});
    }
  }

  async remove(key: string): Promise<void> {
    await promises.rm(this.#path(key), { force: true }).catch(() => {});
  }

  /** Whether no text is there. */
  async isEmpty(): Promise<boolean> {
    return (await promises.readdir(this.#folder).catch(() => [])).length === 0;
  }

  #path(key: string): string {
    return join(this.#folder, sha256(key).slice(0, 32));
  }
}
