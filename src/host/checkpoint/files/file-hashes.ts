import { createHash } from "node:crypto";
import { createReadStream, promises } from "node:fs";
import { join } from "node:path";
import { onAbort } from "../../../base/abort.js";
import { describe, LatentkitError } from "../../../base/errors.js";
import { cacheFolder, StoredTexts } from "../../../base/user-cache.js";
import { Recent } from "./recent.js";

/** Hashing one piece takes less than a millisecond of the event loop. */
const PIECE_BYTES = 2 ** 18;
/** Hashes in memory. */
const MOST = 1000;
/** Hex digits of a hash that Civitai and the A1111 web UI show as AutoV2. */
const AUTO_V2_DIGITS = 10;

/** First digits of a SHA-256 in hex: the AutoV2 hash, by which Civitai finds a model. */
export const autoV2 = (sha256: string): string => sha256.slice(0, AUTO_V2_DIGITS);

/** A file being hashed, for all callers that wait for it. */
interface Job {
  readonly promise: Promise<string>;
  readonly stop: AbortController;
  waiting: number;
}

/**
 * SHA-256 of large files, in hex. Each is computed once as long as path, size, time of change and inode stay, one file at
 * a time, in pieces, so that the event loop keeps turning.
 */
export class FileHashes {
  readonly #hashes = new Recent<string>(MOST);
  readonly #jobs = new Map<string, Job>();
  readonly #stored: StoredHashes | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(stored?: StoredHashes) {
    this.#stored = stored;
  }

  /**
   * Hashes a file. Throws the reason of a signal that aborts, file.not-found, and file.read-failed for a file that cannot
   * be read or changes meanwhile.
   */
  async sha256(path: string, signal?: AbortSignal): Promise<string> {
    const key = await keyOf(path);
    const hash = this.#hashes.get(key) ?? (await this.#stored?.get(key));
    if (hash !== undefined) {
      this.#hashes.set(key, hash);
      return hash;
    }
    signal?.throwIfAborted();
    const job = this.#jobs.get(key) ?? this.#start(path, key);
    job.waiting++;
    return new Promise((resolve, reject) => {
      const unsubscribe = onAbort(signal, () => {
        // others may wait for the same file; a caller that comes after the last has left starts again
        if (--job.waiting === 0) {
          job.stop.abort();
          this.#end(key, job);
        }
        reject(signal?.reason);
      });
      job.promise.finally(unsubscribe).then(resolve, reject);
    });
  }

  #start(path: string, key: string): Job {
    const stop = new AbortController();
    const promise = this.#last
      .then(() => hashOf(path, key, stop.signal))
      .then(async (hash) => {
        await this.#stored?.set(key, hash);
        this.#hashes.set(key, hash);
        return hash;
      });
    const job = { promise, stop, waiting: 0 };
    this.#jobs.set(key, job);
    const end = () => this.#end(key, job);
    this.#last = promise.then(end, end);
    return job;
  }

  #end(key: string, job: Job): void {
    if (this.#jobs.get(key) === job) this.#jobs.delete(key);
  }
}

async function hashOf(path: string, key: string, signal: AbortSignal): Promise<string> {
  signal.throwIfAborted();
  const hash = createHash("sha256");
  try {
    for await (const piece of createReadStream(path, { highWaterMark: PIECE_BYTES, signal })) {
      hash.update(piece as Buffer);
    }
  } catch (error) {
    throw signal.aborted ? signal.reason : readFailed(path, error);
  }
  if ((await keyOf(path)) !== key) {
    throw new LatentkitError("file.read-failed", `File ${describe(path)} changed while it was being read.`);
  }
  return hash.digest("hex");
}

/** Path and state of a file. */
async function keyOf(path: string): Promise<string> {
  try {
    const stats = await promises.stat(path, { bigint: true });
    // a pipe or device would never end
    if (!stats.isFile()) throw new LatentkitError("file.read-failed", `File ${describe(path)} is not a regular file.`);
    return JSON.stringify([path, ...[stats.size, stats.mtimeNs, stats.ino].map(String)]);
  } catch (error) {
    throw readFailed(path, error);
  }
}

function readFailed(path: string, error: unknown): LatentkitError {
  if (error instanceof LatentkitError) return error;
  const { code } = error as NodeJS.ErrnoException;
  if (code === "ENOENT") {
    return new LatentkitError("file.not-found", `File ${describe(path)} not found.`, {}, { cause: error });
  }
  const message = `File ${describe(path)} cannot be read (${code}).`;
  return new LatentkitError("file.read-failed", message, {}, { cause: error });
}

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
