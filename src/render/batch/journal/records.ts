import { describe, LatentkitError } from "../../../base/errors.js";
import { escapeFault } from "../../../io/files/output-path.js";
import { isPlainObject, parseJson, printJson } from "../../../io/json/lossless.js";

/** The first line: the identity of the batch. Another graph, other options or another version give other pictures. */
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
      /** Outputs that the item was rendered without; absent where there are none. */
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
  /** All items came to their end. */
  | { readonly type: "end"; readonly done: number; readonly skipped: number; readonly failed: number };

export const printRecord = (record: JournalHeader | JournalRecord): string => `${printJson(record)}\n`;

/** Beginning of a journal, also of what a kill left of its first line. */
export const HEADER_START = '{"type": "batch"';

const isHeader = ({ id, first, graph, engine }: Record<string, unknown>): boolean =>
  typeof id === "string" &&
  /^[0-9a-f]{12}$/.test(id) &&
  Number.isSafeInteger(first) &&
  (first as number) >= 1 &&
  typeof graph === "string" &&
  typeof engine === "string";

/** Fault of the files of a finished item; undefined where they are what a batch writes. */
function filesFault(files: unknown): string | undefined {
  const expected = "expected paths inside the output folder, received";
  if (!Array.isArray(files)) return `${expected} ${describe(files)}`;
  const wrong = files.findIndex((file) => typeof file !== "string" || escapeFault(file) !== undefined);
  return wrong === -1 ? undefined : `${expected} ${describe(files[wrong])}`;
}

/** Fault of the ids of outputs that were left out; undefined where they are ids, or absent. */
function leftOutFault(ids: unknown): string | undefined {
  if (ids === undefined || (Array.isArray(ids) && ids.every((id) => typeof id === "string"))) return undefined;
  return `expected ids of outputs that were left out, received ${describe(ids)}`;
}

/** Reads one line of a journal. Fails with journal.refused, naming the line where its number is known. */
export function readRecord(line: string, path: string, number?: number): JournalHeader | JournalRecord {
  const refused = (why: string, cause?: unknown) => {
    const at = number === undefined ? "" : `, line ${number}`;
    return new LatentkitError("journal.refused", `Journal ${path}${at}: ${why}.`, {}, { cause });
  };
  const damaged = (cause?: unknown) => refused("the line is not a record of a batch", cause);
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
