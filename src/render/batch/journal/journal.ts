import { type FileHandle, open } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { LatentkitError } from "../../../errors.js";
import { makeEach } from "../../../io/output-path.js";
import { writeFailed } from "../../../io/write-file.js";
import { claimFile, type Release } from "../claim.js";
import type { FileState, Presence } from "../presence.js";
import { HEADER_START, type JournalHeader, type JournalRecord, printRecord, readRecord } from "./journal-records.js";
import { JournalState } from "./journal-state.js";

/** From one fsync to the next: records that come meanwhile share it. What comes alone does not wait. */
const GROUP_MS = 25;
/** Records that are read before the files they name are looked at, several at once. */
const READ_TOGETHER = 256;
const READ_BYTES = 1 << 16;
/** An item number far beyond any batch would make the state outgrow memory. */
const MAX_ITEMS = 2 ** 27;
const MAX_LINE_CHARACTERS = 2 ** 26;

/**
 * The journal of a batch: one JSON record a line, appended only. A record is durable when `append` resolves. One
 * process has it at a time.
 */
export class Journal {
  private waiting = "";
  private flushing: Promise<void> | undefined;
  private failure: LatentkitError | undefined;
  /** When records were last handed to the disk. */
  private flushed = Number.NEGATIVE_INFINITY;

  private constructor(
    readonly path: string,
    readonly header: JournalHeader,
    /** What earlier runs of the batch left. */
    readonly state: JournalState,
    /** Id of the batch that was in the file before, of which nothing was finished. */
    readonly replaced: string | undefined,
    private readonly file: FileHandle,
    private readonly release: Release,
  ) {}

  /**
   * Opens a journal, or begins one with `header()`. Without `resume` one that exists is refused; with it, one of another
   * graph, of other options or another engine; where it finished nothing, it is begun anew instead. A line that a kill
   * cut short is taken off. `stateOf` tells what became of the files of finished items; `takesPartial`: those that were
   * rendered without some outputs count as finished. Fails with journal.refused and file.write-failed.
   */
  static async open(
    path: string,
    header: () => Promise<JournalHeader>,
    resume: boolean,
    stateOf: Presence = async () => "whole",
    takesPartial = false,
  ): Promise<Journal> {
    const full = resolve(path);
    let file: FileHandle | undefined;
    try {
      await makeEach(dirname(full));
      file = await open(full, "a+");
      if (!(await file.stat()).isFile()) throw refused(path, "it is no file");
      const release = await claimFile(file.fd, full);
      if (release === undefined) throw refused(path, "another process is at work on it");
      const wanted = await header();
      const { known, state, length } = await read(file, path, stateOf, takesPartial);
      const why = known === undefined ? undefined : reasonAgainst(known, wanted, resume);
      // what has finished nothing is worth nothing: a wrong option, mended, begins anew
      const isReplaced = why !== undefined && state.finished + state.gone + state.partial === 0;
      if (why !== undefined && !isReplaced) throw refused(path, why);
      const kept = isReplaced ? undefined : known;
      await file.truncate(kept === undefined ? 0 : length);
      const replaced = isReplaced ? known?.id : undefined;
      const journal = new Journal(
        full,
        kept ?? wanted,
        isReplaced ? new JournalState(takesPartial) : state,
        replaced,
        file,
        release,
      );
      if (kept === undefined) await journal.write(printRecord(wanted));
      return journal;
    } catch (error) {
      await file?.close();
      throw writeFailed(path, error);
    }
  }

  /** Resolves when the record is on the disk; rejects, once and for all, when the disk refuses. */
  append(record: JournalRecord): Promise<void> {
    if (this.failure !== undefined) return Promise.reject(this.failure);
    this.waiting += printRecord(record);
    this.flushing ??= this.flush();
    return this.flushing;
  }

  /** Ends the claim. Records that wait are written first. */
  async close(): Promise<void> {
    try {
      await this.flushing;
      await this.appending;
      await (this.next ?? this.syncing);
    } finally {
      await this.file.close();
      await this.release();
    }
  }

  private async flush(): Promise<void> {
    const wait = this.flushed + GROUP_MS - performance.now();
    await new Promise((done) => (wait > 0 ? setTimeout(done, wait) : setImmediate(done)));
    this.flushed = performance.now();
    const lines = this.waiting;
    this.waiting = "";
    // what comes from now on waits for the next one, which waits for this
    this.flushing = undefined;
    await this.write(lines);
  }

  private appending: Promise<void> = Promise.resolve();
  private syncing: Promise<void> = Promise.resolve();
  /** The fsync after the one that runs. */
  private next: Promise<void> | undefined;

  /** What is appended is safe from a kill, though a busy disk may take a second for its fsync. */
  private async write(lines: string): Promise<void> {
    this.appending = this.appending.then(() => this.orFail(() => this.file.appendFile(lines)));
    await this.appending;
    await this.sync();
  }

  private sync(): Promise<void> {
    this.next ??= this.syncing.then(() => {
      this.next = undefined;
      this.syncing = this.orFail(() => this.file.datasync());
      return this.syncing;
    });
    return this.next;
  }

  private async orFail(work: () => Promise<void>): Promise<void> {
    if (this.failure !== undefined) throw this.failure;
    try {
      await work();
    } catch (error) {
      this.failure = writeFailed(this.path, error);
      throw this.failure;
    }
  }
}

function refused(path: string, why: string): LatentkitError {
  return new LatentkitError("journal.refused", `Journal ${path}: ${why}.`);
}

/** Why a batch does not go on with a journal; undefined where it does. */
function reasonAgainst(known: JournalHeader, wanted: JournalHeader, resume: boolean): string | undefined {
  if (!resume) return "it is an earlier batch's; go on with it by resume, or name another file";
  if (known.version !== wanted.version) return "another version of the engine wrote it";
  if (known.graph !== wanted.graph) {
    return "it belongs to another graph, or to other options than these (targets, set, names, metadata)";
  }
  if (known.engine !== wanted.engine) {
    return `engine ${known.engine} wrote it and this is ${wanted.engine}; the rest would not match`;
  }
  return undefined;
}

interface Read {
  readonly known: JournalHeader | undefined;
  readonly state: JournalState;
  /** Up to here the lines are whole. */
  readonly length: number;
}

/** Reads what is there, in pieces: a journal may be larger than memory. */
async function read(file: FileHandle, path: string, stateOf: Presence, takesPartial: boolean): Promise<Read> {
  const state = new JournalState(takesPartial);
  let known: JournalHeader | undefined;
  let length = 0;
  let number = 0;
  let together: Looked[] = [];
  const note = async () => {
    for (const looked of together) noteItem(state, looked.record, await looked.files);
    together = [];
  };
  for await (const { line, end } of wholeLines(file, path)) {
    number++;
    const record = readRecord(line, path, number);
    length = end;
    if (record.type === "batch") known = record;
    else if (record.type !== "end") together.push(look(record, stateOf, path, number));
    if (together.length === READ_TOGETHER) await note();
  }
  await note();
  if (known === undefined) await refuseForeign(file, path);
  return { known, state, length };
}

/** A file without a whole line is a journal only if it begins as one: anything else is not ours to write over. */
async function refuseForeign(file: FileHandle, path: string): Promise<void> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(HEADER_START.length), 0, HEADER_START.length, 0);
  const start = buffer.toString("utf8", 0, bytesRead);
  if (!HEADER_START.startsWith(start)) throw refused(path, "it is no journal of a batch");
}

type ItemRecord = Exclude<JournalRecord, { type: "end" }>;

/** A record, and what became of its files. */
interface Looked {
  readonly record: ItemRecord;
  readonly files: Promise<readonly FileState[]>;
}

function look(record: ItemRecord, stateOf: Presence, path: string, line: number): Looked {
  if (record.item >= MAX_ITEMS) throw refused(path, `line ${line} names item ${record.item}, beyond any batch`);
  const files = Promise.all(record.type === "done" ? record.files.map(stateOf) : []);
  // what cannot be looked at is told when it is its turn
  files.catch(() => undefined);
  return { record, files };
}

function noteItem(state: JournalState, record: ItemRecord, files: readonly FileState[]): void {
  const { item, key } = record;
  if (record.type !== "done") state.begin(item, key);
  else if (files.every((file) => file === "whole")) {
    if (record.leftOut === undefined || record.leftOut.length === 0) state.end(item, key);
    else state.endPartial(item, key, record.files);
  } else {
    const left = record.files.filter((_, index) => files[index] !== "gone");
    state.lose(item, key, left);
  }
}

/** Lines that end; `end` is where the next one begins. What follows the last line break was cut short. */
async function* wholeLines(file: FileHandle, path: string): AsyncGenerator<{ line: string; end: number }> {
  const buffer = Buffer.alloc(READ_BYTES);
  let pending: Buffer[] = [];
  let pendingBytes = 0;
  let at = 0;
  for (;;) {
    const { bytesRead } = await file.read(buffer, 0, READ_BYTES, at);
    if (bytesRead === 0) return;
    let start = 0;
    for (let next = buffer.indexOf(10, start); next !== -1 && next < bytesRead; next = buffer.indexOf(10, start)) {
      const line = Buffer.concat([...pending, buffer.subarray(start, next)]).toString("utf8");
      pending = [];
      pendingBytes = 0;
      start = next + 1;
      yield { line, end: at + start };
    }
    const rest = buffer.subarray(start, bytesRead);
    pendingBytes += rest.length;
    if (pendingBytes > MAX_LINE_CHARACTERS) throw refused(path, "a line has more than 64 MiB");
    if (rest.length > 0) pending.push(Buffer.from(rest));
    at += bytesRead;
  }
}
