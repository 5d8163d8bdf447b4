import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";

/** A map of a bounded number of entries: one more forgets the entry that was used longest ago. */
export class Recent<Value extends {}> {
  readonly #most: number;
  readonly #entries = new Map<string, Value>();

  constructor(most: number) {
    this.#most = most;
  }

  get(key: string): Value | undefined {
    const value = this.#entries.get(key);
    if (value !== undefined) this.set(key, value);
    return value;
  }

  set(key: string, value: Value): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size > this.#most) this.#entries.delete(this.#entries.keys().next().value!);
  }

  /** The value of a key, made if there is none. */
  getOr(key: string, make: () => Value): Value {
    const known = this.get(key);
    if (known !== undefined) return known;
    const value = make();
    this.set(key, value);
    return value;
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }
}

/** Number of files whose objects stay. They are small: weights are the runtime's. */
const MOST = 256;
/** Folders of diffusers have their networks' files one folder down. */
const DEPTH = 2;
/** Entries of a folder that count. */
const MOST_ENTRIES = 1024;

interface Cached {
  readonly state: string;
  readonly object: Promise<unknown>;
}

/** Objects made of files and folders, one for each and its variant as long as they do not change. */
export class FileCache {
  readonly #objects = new Recent<Cached>(MOST);

  /** The object of a file. One that could not be made is tried again. */
  async get<Value>(path: string, variant: string, make: () => Promise<Value>): Promise<Value> {
    const key = `${variant}\n${path}`;
    const state = await stateOf(path, DEPTH);
    const known = this.#objects.get(key);
    const object = known?.state === state ? (known.object as Promise<Value>) : make();
    this.#objects.set(key, { state, object });
    try {
      return await object;
    } catch (error) {
      if (this.#objects.get(key)?.object === object) this.#objects.delete(key);
      throw error;
    }
  }
}

/** Size, time of change and inode, of a folder's entries too; the reader of a file reports what is wrong with it. */
async function stateOf(path: string, depth: number): Promise<string> {
  try {
    const stats = await stat(path, { bigint: true });
    const own = `${stats.size} ${stats.mtimeNs} ${stats.ino}`;
    if (depth === 0 || !stats.isDirectory()) return own;
    const entries = (await readdir(path)).sort().slice(0, MOST_ENTRIES);
    const states = await Promise.all(entries.map((entry) => stateOf(join(path, entry), depth - 1)));
    return JSON.stringify([own, ...entries, ...states]);
  } catch {
    return "";
  }
}
