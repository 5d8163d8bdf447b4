import { randomBytes } from "node:crypto";
import type { FileHandle } from "node:fs/promises";
import { describe, LatentkitError } from "../../../base/errors.js";
import { packageVersion } from "../../../base/package.js";
import { escapeFault } from "../../../io/files/output-path.js";
import { isPlainObject, parseJson, printJson } from "../../../io/json/lossless.js";
import { openRegular } from "../../../io/regular-file.js";
import { firstNumber } from "../names.js";
import { JournalState } from "./state.js";
import type { FileState, Presence } from "./written-files.js";

/** Number of records read before the files they name are checked, several at once. */
const READ_TOGETHER = 256;
const READ_BYTES = 1 << 16;
/** Bytes before a record that are read with it: records of neighbours stand in nearly the order of their positions. */
const READ_BEFORE = 1 << 14;
/** An "end" record is far shorter. */
const TAIL_BYTES = 1024;
/** An item number far beyond any batch would make the state too large for memory. */
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
      if (record.item >= MAX_ITEMS)
        throw refused(path, `line ${number} names item ${record.item}, more than a batch can have`);
      together.push({ record, offset: start, files: statesOf(record, stateOf) });
    }
    if (together.length === READ_TOGETHER) await note();
  }
  await note();
  if (header === undefined) await refuseForeign(file, path);
  return { header, state, length };
}

/** Whether a journal's batch ended without a failed item, so that there is nothing to resume. False without a journal. */
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
    // opening it reports the error
    return false;
  } finally {
    await file?.close();
  }
}

/** Files of items that are done, each read from the record at its offset. */
export class RecordedFiles {
  #block = Buffer.alloc(0);
  #start = 0;
  readonly #file: FileHandle;
  readonly #path: string;

  constructor(file: FileHandle, path: string) {
    this.#file = file;
    this.#path = path;
  }

  async at(offset: number): Promise<readonly string[]> {
    const record = readRecord(await this.#lineAt(offset), this.#path);
    return record.type === "done" ? record.files : [];
  }

  async #lineAt(offset: number): Promise<string> {
    for (let size = READ_BYTES; size <= 2 * MAX_LINE_BYTES; size *= 2) {
      const from = offset - this.#start;
      const end = from < 0 || from >= this.#block.length ? -1 : this.#block.indexOf(NEWLINE, from);
      if (end !== -1) return this.#block.toString("utf8", from, end);
      this.#start = Math.max(0, offset - READ_BEFORE);
      const { buffer, bytesRead } = await this.#file.read(Buffer.alloc(size), 0, size, this.#start);
      this.#block = buffer.subarray(0, bytesRead);
    }
    throw refused(this.#path, "another program has changed it");
  }
}

/** A file without a whole line is a journal only if it begins like one: anything else must not be overwritten. */
async function refuseForeign(file: FileHandle, path: string): Promise<void> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(HEADER_START.length), 0, HEADER_START.length, 0);
  const start = buffer.toString("utf8", 0, bytesRead);
  if (!HEADER_START.startsWith(start)) throw refused(path, "it is not a batch journal");
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

/** Lines with a line break, from some byte on: text after the last one was cut short. */
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

/** The first line, which identifies the batch: a different graph, options or version would give different pictures. */
export interface JournalHeader {
  readonly type: "batch";
  readonly version: 1;
  /** Version of the package. */
  readonly engine: string;
  /** Hash of the graph and of all options that its pictures depend on. */
  readonly graph: string;
  /** Names the batch's temporary files: 12 hexadecimal digits. */
  readonly id: string;
  /** Number in the names of item 0's files. */
  readonly first: number;
}

/** Facts of a batch that its header is made of. */
export interface HeaderFacts {
  /** Absolute. */
  readonly outputDir: string;
  /** Hash of the graph and of all options that its pictures depend on. */
  readonly hash: string;
  /** Prefixes of the nodes that save, by node id. */
  readonly prefixes: Readonly<Record<string, string>>;
}

/** Header of a batch that begins. */
export const newHeader = async ({ outputDir, hash, prefixes }: HeaderFacts): Promise<JournalHeader> => ({
  type: "batch",
  version: 1,
  engine: packageVersion(),
  graph: hash,
  id: randomBytes(6).toString("hex"),
  first: await firstNumber(outputDir, prefixes),
});

/** One line after the header. `item`: position of the item; `key`: see `itemKey`. */
export type JournalRecord =
  /** Written before any of the item's files; `names`: beginnings of their names, by node id. */
  | {
      readonly type: "intent";
      readonly item: number;
      readonly key: string;
      readonly values: unknown;
      readonly names: Readonly<Record<string, string>>;
    }
  /** The item's files are written, their ends perhaps not yet on the medium; paths relative to the output folder. */
  | {
      readonly type: "done";
      readonly item: number;
      readonly key: string;
      readonly files: readonly string[];
      /** Outputs that the item was rendered without; absent if there are none. */
      readonly leftOut?: readonly string[];
      readonly ms: number;
    }
  | {
      readonly type: "failed";
      readonly item: number;
      readonly key: string;
      readonly attempt: number;
      readonly error: { readonly code?: string; readonly message: string };
    }
  /** All items have ended. */
  | { readonly type: "end"; readonly done: number; readonly skipped: number; readonly failed: number };

export const printRecord = (record: JournalHeader | JournalRecord): string => `${printJson(record)}\n`;

/** Beginning of a journal, even if a kill cut its first line short. */
const HEADER_START = '{"type": "batch"';

const isHeader = ({ id, first, graph, engine }: Record<string, unknown>): boolean =>
  typeof id === "string" &&
  /^[0-9a-f]{12}$/.test(id) &&
  Number.isSafeInteger(first) &&
  (first as number) >= 1 &&
  typeof graph === "string" &&
  typeof engine === "string";

/** Fault of the files of a finished item; undefined if they are what a batch writes. */
function filesFault(files: unknown): string | undefined {
  const expected = "expected paths inside the output folder, received";
  if (!Array.isArray(files)) return `${expected} ${describe(files)}`;
  const wrong = files.findIndex((file) => typeof file !== "string" || escapeFault(file) !== undefined);
  return wrong === -1 ? undefined : `${expected} ${describe(files[wrong])}`;
}

/** Fault of the ids of outputs that were left out; undefined if they are ids, or absent. */
function leftOutFault(ids: unknown): string | undefined {
  if (ids === undefined || (Array.isArray(ids) && ids.every((id) => typeof id === "string"))) return undefined;
  return `expected ids of outputs that were left out, received ${describe(ids)}`;
}

/** Reads one line of a journal. Fails with journal.refused, naming the line if its number is known. */
function readRecord(line: string, path: string, number?: number): JournalHeader | JournalRecord {
  const refused = (why: string, cause?: unknown) => {
    const at = number === undefined ? "" : `, line ${number}`;
    return new LatentkitError("journal.refused", `Journal ${path}${at}: ${why}.`, {}, { cause });
  };
  const damaged = (cause?: unknown) => refused("this line is damaged", cause);
  let value: unknown;
  try {
    value = parseJson(line);
  } catch (error) {
    throw damaged(error);
  }
  if (!isPlainObject(value)) throw damaged();
  const isItem =
    Number.isSafeInteger(value.item) && (value.item as number) >= 0 && /^[0-9a-f]{16}$/.test(String(value.key));
  if (number === 1 && !isHeader(value)) throw damaged();
  const isRecord =
    number === 1
      ? value.type === "batch"
      : value.type === "end" || (isItem && ["intent", "done", "failed"].includes(String(value.type)));
  if (!isRecord) throw damaged();
  const fault = value.type === "done" ? (filesFault(value.files) ?? leftOutFault(value.leftOut)) : undefined;
  if (fault !== undefined) throw refused(fault);
  return value as unknown as JournalHeader | JournalRecord;
}
