import { createReadStream } from "node:fs";
import { type CsvError, Parser } from "csv-parse";
import { describe, type LatentkitError } from "../../errors.js";
import type { BatchItem, ItemOrigin } from "../batch/types.js";
import { type GraphKeys, takesText } from "./graph-keys.js";
import { faultyItem, type ItemPlace, itemError, unreadable } from "./item-error.js";
import type { ItemFile } from "./source.js";

/** A row of more bytes is a quote that was never closed, or no CSV. */
const MAX_ROW_BYTES = 1 << 20;
const MAX_COLUMNS = 10_000;
const MAX_KEY_CHARACTERS = 1000;
const LINE_BREAK = /\r\n|\n|\r/g;
/** What a byte that is no UTF-8 is read as. */
const REPLACEMENT = "\ufffd";

interface Row {
  readonly fields: readonly string[];
  /** Of its first character, from 1. */
  readonly line: number;
}

interface Column {
  readonly key: string;
  readonly takesText: boolean;
}

/**
 * Reads items from a CSV file: the first row has keys as in `set`, each further one is an item, its values texts. Rows
 * are read as they are asked for. Fails with items.invalid where a column names nothing in the graph or comes twice; a
 * row whose fields are too few, too many or empty for a number is an item with a fault; broken quoting ends the items.
 */
export async function readCsv(path: string, keys: GraphKeys): Promise<ItemFile> {
  const rows = readRows(path);
  const first = await rows.next();
  if (first.done) throw itemError({ file: path, line: 1 }, "expected a row of keys, received the end of the file");
  const columns = readHeader(first.value, path, keys);
  return { keys: columns.map(({ key }) => key), items: toItems(rows, path, columns) };
}

function readHeader({ fields, line }: Row, file: string, keys: GraphKeys): Column[] {
  if (fields.length > MAX_COLUMNS) {
    throw itemError({ file, line }, `expected at most ${MAX_COLUMNS} columns, received ${fields.length}`);
  }
  const names = fields.map((field) => field.trim());
  const seen = new Map<string, number>();
  return names.map((key, i) => {
    const place = { file, line, column: i + 1 };
    if (key === "" || key.length > MAX_KEY_CHARACTERS) {
      throw itemError(
        place,
        `expected a key such as 6.text, received ${key === "" ? "an empty field" : describe(key)}`,
      );
    }
    const before = seen.get(key);
    if (before !== undefined) throw itemError({ ...place, key }, `the key is in column ${before} already`);
    seen.set(key, i + 1);
    const found = keys.find(key);
    if (!("reason" in found)) return { key, takesText: takesText(found) };
    const other = names.length === 1 ? otherSeparator(key) : undefined;
    if (other === undefined) throw itemError({ ...place, key }, found.reason, found.suggestion);
    throw itemError({ file, line }, `expected commas between the columns, received ${other}`);
  });
}

function otherSeparator(header: string): string | undefined {
  if (header.includes(";")) return "semicolons";
  return header.includes("\t") ? "tabs" : undefined;
}

async function* toItems(
  rows: AsyncIterable<Row>,
  file: string,
  columns: readonly Column[],
): AsyncGenerator<BatchItem, void, undefined> {
  const numbers = Object.fromEntries(columns.map(({ key }, i) => [key, i + 1]));
  for await (const { fields, line } of rows) {
    const origin: ItemOrigin = { file, line, columns: numbers };
    const fault = faultOf(fields, { file, line }, columns);
    // a row of the wrong length says nothing certain of any column
    const isWhole = fields.length === columns.length;
    const values = isWhole ? Object.fromEntries(columns.map(({ key }, i) => [key, fields[i]!])) : {};
    yield fault === undefined ? { values, origin } : faultyItem(origin, fault, values);
  }
}

function faultOf(fields: readonly string[], place: ItemPlace, columns: readonly Column[]): LatentkitError | undefined {
  const at = (i: number): ItemPlace => ({ ...place, column: i + 1, key: columns[i]?.key });
  if (fields.length !== columns.length) {
    const which = at(Math.min(fields.length, columns.length));
    return itemError(which, `expected ${columns.length} fields in the row, received ${fields.length}`);
  }
  for (const [i, field] of fields.entries()) {
    if (field === "" && !columns[i]!.takesText) return itemError(at(i), "expected a value, received an empty field");
    if (field.includes(REPLACEMENT)) return itemError(at(i), "expected text in UTF-8, received other bytes");
  }
  return undefined;
}

/** Rows with their lines, blank ones left out. Fails as readCsv; the rows before the failure come first. */
async function* readRows(file: string): AsyncGenerator<Row, void, undefined> {
  let ready: Row[] = [];
  let line = 1;
  const parser = new Parser({
    bom: true,
    // all three at once: files are put together from others
    record_delimiter: ["\r\n", "\n", "\r"],
    relax_column_count: true,
    max_record_size: MAX_ROW_BYTES,
    raw: true,
    on_record: (record: unknown) => {
      const { raw, record: fields } = record as { raw: string; record: string[] };
      const isBlank = fields.length === 1 && fields[0] === "" && !raw.includes('"');
      if (!isBlank) ready.push({ fields, line });
      line += raw.match(LINE_BREAK)?.length ?? 0;
      return null;
    },
  });
  // heard through `write`; without a listener it would end the process
  parser.on("error", () => {});
  const take = (): Row[] => {
    const taken = ready;
    ready = [];
    return taken;
  };
  let isFirst = true;
  try {
    for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>) {
      if (isFirst) refuseUtf16(chunk, file);
      isFirst = false;
      const failure = await settled((done) => parser.write(chunk, done));
      yield* take();
      if (failure !== undefined) throw brokenRow(failure, file, line);
    }
    const failure = await settled((done) => {
      parser.once("error", done);
      parser.end(done);
    });
    yield* take();
    if (failure !== undefined) throw brokenRow(failure, file, line);
  } catch (error) {
    throw unreadable(file, error);
  } finally {
    parser.destroy();
  }
}

function settled(act: (done: (error?: Error | null) => void) => void): Promise<Error | undefined> {
  return new Promise((resolve) => act((error) => resolve(error ?? undefined)));
}

function refuseUtf16(chunk: Buffer, file: string): void {
  const [first, second] = chunk;
  const isMarked = (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff);
  if (isMarked) throw itemError({ file, line: 1 }, "expected text in UTF-8, received UTF-16");
}

/** `begun`: line of the row's first character; the line of the error itself where one character is to blame. */
function brokenRow(error: Error, file: string, begun: number): LatentkitError {
  const { code, column } = error as CsvError & { column?: number };
  const place: ItemPlace = { file, line: begun, column: typeof column === "number" ? column + 1 : undefined };
  if (code === "CSV_QUOTE_NOT_CLOSED") {
    return itemError(place, "the row begins a quoted field that never ends");
  }
  if (code === "CSV_MAX_RECORD_SIZE") {
    return itemError(place, "the row has more than 1 MiB; is a quote not closed?");
  }
  if (code === "CSV_INVALID_CLOSING_QUOTE") {
    return itemError(
      place,
      'in the row that begins here, a comma is missing after a closing quote, or a quote in a text is not doubled ("")',
    );
  }
  return itemError(place, "in the row that begins here, a quote stands inside a field that does not begin with one");
}
