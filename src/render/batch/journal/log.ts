import { createHash } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import { createServer } from "node:net";
import { constants } from "node:os";
import { dirname, resolve } from "node:path";
import { getSystemErrorName } from "node:util";
import { LatentkitError } from "../../../base/errors.js";
import { makeEach } from "../../../io/files/output-path.js";
import { syncData, writeFailed } from "../../../io/files/write-file.js";
import { loadNative } from "../../../native/load.js";
import {
  type HeaderFacts,
  type JournalHeader,
  type JournalRecord,
  newHeader,
  printRecord,
  RecordedFiles,
  readJournal,
  refused,
} from "./records.js";
import { JournalState } from "./state.js";
import { createPresence } from "./written-files.js";

/** Time between two fsyncs: records that arrive meanwhile share the next. A single record does not wait. */
const GROUP_MS = 25;

export interface LogOptions extends HeaderFacts {
  readonly resume: boolean;
  /** Whether items that an earlier run rendered without some outputs count as finished. */
  readonly partial: boolean;
}

/** The file of a journal: one JSON record a line, appended only. One process has it at a time. */
export class JournalLog {
  /** Files of items that earlier runs finished. */
  readonly files: RecordedFiles;
  #waiting = "";
  #flushing: Promise<void> | undefined;
  #failure: LatentkitError | undefined;
  /** When records were last written to the disk. */
  #flushed = Number.NEGATIVE_INFINITY;
  readonly #file: FileHandle;
  readonly #unlock: Unlock;

  private constructor(
    readonly path: string,
    readonly header: JournalHeader,
    /** Items of earlier runs. */
    readonly state: JournalState,
    /** Id of the batch that was in the file before, without a finished item. */
    readonly replaced: string | undefined,
    file: FileHandle,
    unlock: Unlock,
  ) {
    this.#file = file;
    this.#unlock = unlock;
    this.files = new RecordedFiles(file, path);
  }

  /**
   * Opens a journal, or begins one. Without `resume` an existing one is refused; with it, one of another graph, other
   * options or another version, unless it has no finished item: then it is begun anew. A line that a kill cut short is
   * removed. Fails with journal.refused and file.write-failed.
   */
  static async open(path: string, options: LogOptions): Promise<JournalLog> {
    const { outputDir, resume, partial } = options;
    const full = resolve(path);
    let file: FileHandle | undefined;
    try {
      await makeEach(dirname(full));
      file = await open(full, "a+");
      if (!(await file.stat()).isFile()) throw refused(path, "it is not a regular file");
      const unlock = await lockFile(file.fd, full);
      if (unlock === undefined) throw refused(path, "another process is using it");
      const own = await newHeader(options);
      const { header, state, length } = await readJournal(file, path, createPresence(outputDir), partial);
      const reason = header === undefined ? undefined : reasonAgainst(header, own, resume);
      // a journal without a finished item is worth nothing: after correcting an option, begin anew
      const isReplaced = reason !== undefined && state.finished + state.gone + state.partial === 0;
      if (reason !== undefined && !isReplaced) throw refused(path, reason);
      if (header !== undefined && !isReplaced) {
        await file.truncate(length);
        return new JournalLog(full, header, state, undefined, file, unlock);
      }
      await file.truncate(0);
      const log = new JournalLog(full, own, new JournalState(partial), header?.id, file, unlock);
      await log.#write(printRecord(own));
      return log;
    } catch (error) {
      await file?.close();
      throw writeFailed(path, error);
    }
  }

  /** Resolves when the record is on the disk; rejects, once and for all, when the disk refuses. */
  append(record: JournalRecord): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    this.#waiting += printRecord(record);
    this.#flushing ??= this.#flush();
    return this.#flushing;
  }

  /** Writes the records that wait, and unlocks the file. */
  async close(): Promise<void> {
    try {
      await this.#flushing;
      await this.#appending;
      await (this.#next ?? this.#syncing);
    } catch (error) {
      // its writer has seen the error
      if (error !== this.#failure) throw error;
    } finally {
      await this.#file.close();
      await this.#unlock();
    }
  }

  async #flush(): Promise<void> {
    const wait = this.#flushed + GROUP_MS - performance.now();
    await new Promise((done) => (wait > 0 ? setTimeout(done, wait) : setImmediate(done)));
    this.#flushed = performance.now();
    const lines = this.#waiting;
    this.#waiting = "";
    // records from now on wait for the next flush, which waits for this one
    this.#flushing = undefined;
    await this.#write(lines);
  }

  #appending: Promise<void> = Promise.resolve();
  #syncing: Promise<void> = Promise.resolve();
  /** The fsync after the one that runs. */
  #next: Promise<void> | undefined;

  /** Appended lines survive a kill; only the fsync, for a power failure, may take a busy disk a second. */
  async #write(lines: string): Promise<void> {
    this.#appending = this.#appending.then(() => this.#orFail(() => this.#file.appendFile(lines)));
    await this.#appending;
    await this.#sync();
  }

  #sync(): Promise<void> {
    this.#next ??= this.#syncing.then(() => {
      this.#next = undefined;
      this.#syncing = this.#orFail(() => syncData(this.#file));
      return this.#syncing;
    });
    return this.#next;
  }

  async #orFail(work: () => Promise<void>): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    try {
      await work();
    } catch (error) {
      this.#failure = writeFailed(this.path, error);
      throw this.#failure;
    }
  }
}

/** Why a batch cannot continue with a journal; undefined if it can. */
function reasonAgainst(header: JournalHeader, own: JournalHeader, resume: boolean): string | undefined {
  if (!resume)
    return "it belongs to an earlier batch; continue that batch with resume, name another journal, or remove this one";
  if (header.version !== own.version) return "its format is not supported";
  if (header.graph !== own.graph) {
    return "it belongs to a different graph or to different options (targets, set, names, metadata)";
  }
  if (header.engine !== own.engine) {
    return `it was written by latentkit ${header.engine}; ${own.engine} would render the remaining items differently`;
  }
  return undefined;
}

/** Releases a lock; the end of the process, of any kind, releases it too. */
type Unlock = () => Promise<void>;

/**
 * Locks an open file for this process; undefined if another has it. The system itself keeps the lock (flock on the
 * open file, on Windows the name of a pipe), so a kill leaves none behind. Fails with file.write-failed if the file
 * system does not support locks.
 *
 * @internal
 */
export async function lockFile(fd: number, path: string): Promise<Unlock | undefined> {
  if (process.platform === "win32") return lockPipe(path);
  const error = loadNative().lockFile(fd);
  // closing the file releases it
  if (error === 0) return async () => {};
  if (error === constants.errno.EWOULDBLOCK) return undefined;
  throw new LatentkitError("file.write-failed", `Journal ${path} cannot be locked (${getSystemErrorName(-error)}).`);
}

function lockPipe(path: string): Promise<Unlock | undefined> {
  const name = createHash("sha256").update(path.toLowerCase()).digest("hex").slice(0, 32);
  const server = createServer();
  server.unref();
  return new Promise((resolve) => {
    server.once("error", () => resolve(undefined));
    server.listen(`\\\\.\\pipe\\latentkit-${name}`, () => {
      resolve(() => new Promise((done) => server.close(() => done())));
    });
  });
}
