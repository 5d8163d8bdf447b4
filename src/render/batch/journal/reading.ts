import type { FileHandle } from "node:fs/promises";
import { LatentkitError } from "../../../base/errors.js";
import { openRegular } from "../../../io/regular-file.js";
import type { FileState, Presence } from "./presence.js";
import { HEADER_START, type JournalHeader, type JournalRecord, readRecord } from "./records.js";
import { JournalState } from "./state.js";

/** Records that are read before the files they name are looked at, several at once. */
const READ_TOGETHER = 256;
const READ_BYTES = 1 << 16;
/** Bytes before a record that are read with it: records of neighbours stand in nearly the order of their positions. */
const READ_BEFORE = 1 << 14;
/** An "end" record is far shorter. */
const TAIL_BYTES = 1024;
/** An item number far beyond any batch would make the state outgrow memory. */
const MAX_ITEMS = 2 ** 27;
const MAX_LINE_BYTES = 2 ** 26;
const NEWLINE = 10;

/** Content of a journal. */
export interface JournalContent {
  readonly header: JournalHeader | undefined;
  readonly state: JournalState;
  /** Number of bytes up to the end of the last whole line. */
  readonly length: number;
}

export const refused = (path: string, why: string): LatentkitError =>
  new LatentkitError("journal.refused", `Journal ${path}: ${why}.`);

/** Reads a journal in pieces: it may be larger than memory. Fails with journal.refused, which names the line. */
export async function readJournal(
  file: FileHandle,
  path: string,
  stateOf: Presence,
  takesPartial: boolean,
): Promise<JournalContent> {
  const state = new JournalState(takesPartial);
  let header: JournalHeader | undefined;
  let length = 0;
  let number = 0;
  let together: ItemLine[] = [];
  const note = async () => {
    for (const line of together) noteItem(state, line, await line.files);
    together = [];
  };
  for await (const { line, start, end } of wholeLines(file, path)) {
    number++;
    const record = readRecord(line, path, number);
    length = end;
    if (record.type === "batch") header = record;
    else if (record.type !== "end") {
      if (record.item >= MAX_ITEMS) throw refused(path, `line ${number} names item ${record.item}, beyond any batch`);
      together.push({ record, offset: start, files: statesOf(record, stateOf) });
    }
    if (together.length === READ_TOGETHER) await note();
  }
  await note();
  if (header === undefined) await refuseForeign(file, path);
  return { header, state, length };
}

/** Whether a journal's batch came to its end and no item failed: there is nothing to resume. False where there is none. */
export async function isFinished(path: string): Promise<boolean> {
  let file: FileHandle | undefined;
  try {
    file = await openRegular(path);
    const { size } = await file.stat();
    let last = "";
    for await (const { line } of wholeLines(file, path, Math.max(0, size - TAIL_BYTES))) last = line;
    const record = readRecord(last, path);
    return record.type === "end" && record.failed === 0;
  } catch {
    // whoever opens it reports what is wrong with it
    return false;
  } finally {
    await file?.close();
  }
}

/** Files of items that are done, each read from the record at its offset. */
export class RecordedFiles {
  private block = Buffer.alloc(0);
  private start = 0;

  constructor(
    private readonly file: FileHandle,
    private readonly path: string,
  ) {}

  async at(offset: number): Promise<readonly string[]> {
    const record = readRecord(await this.lineAt(offset), this.path);
    return record.type === "done" ? record.files : [];
  }

  private async lineAt(offset: number): Promise<string> {
    for (let size = READ_BYTES; size <= 2 * MAX_LINE_BYTES; size *= 2) {
      const from = offset - this.start;
      const end = from < 0 || from >= this.block.length ? -1 : this.block.indexOf(NEWLINE, from);
      if (end !== -1) return this.block.toString("utf8", from, end);
      this.start = Math.max(0, offset - READ_BEFORE);
      const { buffer, bytesRead } = await this.file.read(Buffer.alloc(size), 0, size, this.start);
      this.block = buffer.subarray(0, bytesRead);
    }
    throw refused(this.path, "another program has changed it");
  }
}

/** A file without a whole line is a journal only if it begins as one: anything else must not be written over. */
async function refuseForeign(file: FileHandle, path: string): Promise<void> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(HEADER_START.length), 0, HEADER_START.length, 0);
  const start = buffer.toString("utf8", 0, bytesRead);
  if (!HEADER_START.startsWith(start)) throw refused(path, "it is no journal of a batch");
}

type ItemRecord = Exclude<JournalRecord, { type: "end" }>;

/** A record, and the states of its files. */
interface ItemLine {
  readonly record: ItemRecord;
  readonly offset: number;
  readonly files: Promise<readonly FileState[]>;
}

function statesOf(record: ItemRecord, stateOf: Presence): ItemLine["files"] {
  const files = Promise.all(record.type === "done" ? record.files.map(stateOf) : []);
  // a failure is thrown when it is the record's turn
  files.catch(() => undefined);
  return files;
}

function noteItem(state: JournalState, { record, offset }: ItemLine, files: readonly FileState[]): void {
  const { item, key } = record;
  if (record.type !== "done") state.begin(item, key);
  else if (files.some((file) => file !== "whole")) {
    const left = record.files.filter((_, index) => files[index] !== "gone");
    state.lose(item, key, left);
  } else if (record.leftOut === undefined || record.leftOut.length === 0) state.end(item, key, offset);
  else state.endPartial(item, key, record.files, offset);
}

/** Lines with a line break, from some byte on: what follows the last one was cut short. */
async function* wholeLines(
  file: FileHandle,
  path: string,
  from = 0,
): AsyncGenerator<{ line: string; start: number; end: number }> {
  const buffer = Buffer.alloc(READ_BYTES);
  let pending: Buffer[] = [];
  let pendingBytes = 0;
  for (let at = from; ; ) {
    const { bytesRead } = await file.read(buffer, 0, READ_BYTES, at);
    if (bytesRead === 0) return;
    const bytes = buffer.subarray(0, bytesRead);
    let start = 0;
    for (let next = bytes.indexOf(NEWLINE); next !== -1; next = bytes.indexOf(NEWLINE, start)) {
      const line = Buffer.concat([...pending, bytes.subarray(start, next)]).toString("utf8");
      const first = at + start - pendingBytes;
      pending = [];
      pendingBytes = 0;
      start = next + 1;
      yield { line, start: first, end: at + start };
    }
    const rest = bytes.subarray(start);
    pendingBytes += rest.length;
    if (pendingBytes > MAX_LINE_BYTES) throw refused(path, "a line has more than 64 MiB");
    if (rest.length > 0) pending.push(Buffer.from(rest));
    at += bytesRead;
  }
}
