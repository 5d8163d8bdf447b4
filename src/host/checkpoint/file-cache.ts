import { stat } from "node:fs/promises";

/** Number of files whose objects stay. They are small: weights are the runtime's. */
const MOST = 256;

interface Cached {
  readonly state: string;
  readonly object: Promise<unknown>;
}

/** Objects made of files, one for each file and variant as long as the file does not change. */
export class FileCache {
  /** In order of last use, most recent last. */
  readonly #objects = new Map<string, Cached>();

  /** The object of a file. One that could not be made is tried again. */
  async get<Value>(path: string, variant: string, make: () => Promise<Value>): Promise<Value> {
    const key = `${variant}\n${path}`;
    const state = await stateOf(path);
    const known = this.#objects.get(key);
    this.#objects.delete(key);
    const object = known?.state === state ? (known.object as Promise<Value>) : make();
    this.#objects.set(key, { state, object });
    if (this.#objects.size > MOST) this.#objects.delete(this.#objects.keys().next().value!);
    try {
      return await object;
    } catch (error) {
      if (this.#objects.get(key)?.object === object) this.#objects.delete(key);
      throw error;
    }
  }
}

/** Size, time of change and inode; what is wrong with a file is said by who reads it. */
async function stateOf(path: string): Promise<string> {
  try {
    const { size, mtimeNs, ino } = await stat(path, { bigint: true });
    return `${size} ${mtimeNs} ${ino}`;
  } catch {
    return "";
  }
}
