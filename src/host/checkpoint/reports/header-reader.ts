import type { BigIntStats } from "node:fs";
import { stat } from "node:fs/promises";
import { Worker } from "node:worker_threads";
import { LatentkitError } from "../../../base/errors.js";
import type { FileRefusal } from "../../host.js";
import { KIND_FOLDERS, type ModelKind } from "../files/kinds.js";
import { type ModelFile, ModelFolders } from "../files/model-folders.js";
import { Recent } from "../files/recent.js";
import { quotedName } from "../weights/stored.js";
import type { FileFacts } from "./file-facts.js";
import type { SentRead } from "./header-thread.js";
import { describeFile, type ListedModel } from "./list-models.js";

/** Files whose readings stay. */
const MOST = 16_384;
/** Time that one file may take: disk and processor may be slow or busy, a header takes seconds at most. */
const FILE_MS = 60_000;
const THREAD_MIB = 512;
/** Time for which callers wait for a list. */
const WAIT_MS = 1000;
const STATS_AT_ONCE = 32;

/** A model file by its header. */
export interface HeaderRead extends FileFacts {
  readonly listed: ListedModel;
}

interface Wanted {
  readonly key: string;
  readonly file: ModelFile;
}

/** The state of a file, as a key. */
export const stateKey = ({ kind, path }: ModelFile, { size, mtimeNs, ino }: BigIntStats): string =>
  [kind, path, size, mtimeNs, ino].map(String).join("\n");

/** Whether work ends within the second that callers wait for a list; otherwise it continues. */
export async function within(work: Promise<void>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), WAIT_MS);
  });
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}

// Lists are answered within a second from the headers read so far; a run that loads a file reports its errors.
/** Reads headers of model files in a thread, one after the other, each once for each state of its file. */
export class HeaderReader {
  readonly #known = new Recent<HeaderRead>(MOST);
  readonly #pending = new Set<string>();
  #last: Promise<void> = Promise.resolve();

  /** Returns undefined for a file that has not been read in this state. */
  get(state: string): HeaderRead | undefined {
    return this.#known.get(state);
  }

  isPending(state: string): boolean {
    return this.#pending.has(state);
  }

  /** Reads new and changed files. Resolves once all existing files are known; never rejects. */
  async read(files: readonly ModelFile[]): Promise<void> {
    const wanted = (await wantedOf(files)).filter(
      ({ key }) => this.#known.get(key) === undefined && !this.#pending.has(key),
    );
    for (const { key } of wanted) this.#pending.add(key);
    this.#last = this.#last.then(() => this.#readAll(wanted));
    await this.#last;
  }

  async #readAll(wanted: readonly Wanted[]): Promise<void> {
    for (let done = 0; done < wanted.length; ) {
      done += await inThread(wanted.slice(done), ({ key }, read) => this.#take(key, read));
      const failed = wanted[done];
      // the thread has ended: the remaining files are read in another one
      if (failed !== undefined) this.#take(failed.key, tooComplex(failed.file));
      done++;
    }
  }

  #take(key: string, read: HeaderRead): void {
    this.#pending.delete(key);
    this.#known.set(key, read);
  }
}

/** Existing model files, with their states; a folder of diffusers has no header. */
async function wantedOf(files: readonly ModelFile[]): Promise<Wanted[]> {
  const wanted: Wanted[] = [];
  for (let at = 0; at < files.length; at += STATS_AT_ONCE) {
    const some = files.slice(at, at + STATS_AT_ONCE);
    const stats = await Promise.all(some.map(({ path }) => stat(path, { bigint: true }).catch(() => undefined)));
    for (const [i, file] of some.entries()) {
      const found = stats[i];
      if (found?.isFile()) wanted.push({ key: stateKey(file, found), file });
    }
  }
  return wanted;
}

/** Reads files in a thread. Resolves to the number of those that it has read before one took too much time or memory. */
function inThread(wanted: readonly Wanted[], take: (wanted: Wanted, read: HeaderRead) => void): Promise<number> {
  const thread = new Worker(new URL("./header-thread.js", import.meta.url), {
    workerData: wanted.map(({ file }) => file),
    resourceLimits: { maxOldGenerationSizeMb: THREAD_MIB },
  });
  thread.unref();
  return new Promise((resolve) => {
    let done = 0;
    const end = () => {
      clearTimeout(timer);
      resolve(done);
      void thread.terminate();
    };
    let timer = setTimeout(end, FILE_MS).unref();
    thread.on("message", ({ refusal, ...read }: SentRead) => {
      const isError = refusal !== undefined && "code" in refusal;
      const error = isError && new LatentkitError(refusal.code, refusal.message, refusal.details);
      take(wanted[done]!, { ...read, refusal: error ? { error } : (refusal as FileRefusal | undefined) });
      done++;
      clearTimeout(timer);
      timer = setTimeout(end, FILE_MS).unref();
    });
    thread.once("error", end);
    thread.once("exit", end);
  });
}

function tooComplex({ kind, name, path }: ModelFile): HeaderRead {
  const message = `Model ${quotedName(name)}: reading its header took too much time or memory.`;
  const error = new LatentkitError("safetensors.invalid", message);
  return { listed: { kind, name, path, bytes: 0, dtypes: [], refusal: message }, refusal: { error } };
}

const KINDS = Object.keys(KIND_FOLDERS) as ModelKind[];

/** A list of the model files below folders, whose headers a thread reads. */
export class ModelListing {
  readonly #folders: ModelFolders;
  readonly #headers = new HeaderReader();

  /** Throws config.invalid for folders that do not exist. */
  constructor(models: readonly string[]) {
    this.#folders = new ModelFolders(models);
  }

  /** Lists files by kind and name within a second or so; those that have not been read by then say so. */
  async list(): Promise<{ readonly models: readonly ListedModel[]; readonly isComplete: boolean }> {
    const files = KINDS.flatMap((kind) => this.#folders.files(kind));
    const isComplete = await within(this.#headers.read(files));
    const models: ListedModel[] = [];
    for (const file of files) models.push(await this.#listed(file));
    return { models, isComplete };
  }

  async #listed(file: ModelFile): Promise<ListedModel> {
    const { kind, name, path } = file;
    const stats = await stat(path, { bigint: true }).catch(() => undefined);
    // a folder of diffusers
    if (stats !== undefined && !stats.isFile()) return describeFile(file);
    const read = stats && this.#headers.get(stateKey(file, stats));
    if (read !== undefined) return { ...read.listed, bytes: Number(stats!.size) };
    const refusal = `Model ${quotedName(name)} has not been read yet: reload the list.`;
    return { kind, name, path, bytes: Number(stats?.size ?? 0n), dtypes: [], refusal };
  }
}
