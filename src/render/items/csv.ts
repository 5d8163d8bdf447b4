import { type CsvError, Parser } from "csv-parse";
import { describe, type LatentkitError } from "../../base/errors.js";
import { lackOfDigits } from "../fill/seed-digits.js";
import { type ItemKeys, type KeyRole, takesSeed, takesText, unknownKey, withFields } from "./graph-keys.js";
import { type BatchItem, type FilePosition, type ItemParser, itemError } from "./item.js";

/** A row of more bytes is a quote that was never closed, or no CSV. */
const MAX_ROW_BYTES = 1 << 20;
const MAX_COLUMNS = 10_000;
const MAX_KEY_CHARACTERS = 1000;
const LINE_BREAK = /\r\n|\n|\r/g;
/** Stands for bytes that are not UTF-8. */
const REPLACEMENT = "\ufffd";

interface Row {
  readonly fields: readonly string[];
  /** Line of its first character, from 1. */
  readonly line: number;
}

interface Column {
  /** As the batch has it. */
  readonly key: string;
  /** As the file has it. */
  readonly header: string;
  readonly role: KeyRole["role"];
  /** Keys of the inputs that it sets. */
  readonly inputs: readonly string[];
  readonly takesText: boolean;
  readonly takesSeed: boolean;
}

// A row that cannot be read fails only that item; broken quoting ends the items, since the next row's start is
// unknown.
// Values stay text until they meet the input, so every digit and zero arrives as written.
/**
 * Items of a CSV file: the first row has keys as in `set`, each further one is an item, its values texts; blank rows
 * are left out. Fails with items.invalid if a column is for nothing or comes twice, and at broken
 * quoting; a row whose fields are too few, too many, empty for a number or shortened for a seed is an item with a fault.
 */
export class CsvParser implements ItemParser {
  #columns: readonly Column[] | undefined;
  #numbers: Readonly<Record<string, number>> = {};
  #rows: Row[] = [];
  #line = 1;
  readonly #parser: Parser;
  readonly #file: string;
  readonly #itemKeys: ItemKeys;

  constructor(file: string, itemKeys: ItemKeys) {
    this.#file = file;
    this.#itemKeys = itemKeys;
    this.#parser = new Parser({
      bom: true,
      // all three at once: files are put together from others
      record_delimiter: ["\r\n", "\n", "\r"],
      relax_column_count: true,
      max_record_size: MAX_ROW_BYTES,
      raw: true,
      on_record: (record: unknown) => {
        const { raw, record: fields } = record as { raw: string; record: string[] };
        const isBlank = fields.length === 1 && fields[0] === "" && !raw.includes('"');
        if (!isBlank) this.#rows.push({ fields, line: this.#line });
        this.#line += raw.match(LINE_BREAK)?.length ?? 0;
        return null;
      },
    });
    // `push` reports it; without a listener it would end the process
    this.#parser.on("error", () => {});
  }

  get keys(): readonly string[] {
    return this.#keysOf("value");
  }

  get fields(): readonly string[] {
    return this.#keysOf("field");
  }

  #keysOf(role: KeyRole["role"]): readonly string[] {
    return (this.#columns ?? []).filter((column) => column.role === role).map(({ key }) => key);
  }

  async push(chunk: Buffer | undefined, items: BatchItem[]): Promise<void> {
    const failure = await this.#parse(chunk);
    const rows = this.#rows;
    this.#rows = [];
    for (const row of rows) {
      if (this.#columns === undefined) this.#setColumns(row);
      else items.push(this.#itemOf(row, this.#columns));
    }
    if (failure !== undefined) throw brokenRow(failure, this.#file, this.#line);
    if (chunk === undefined && this.#columns === undefined) {
      throw itemError({ file: this.#file, line: 1 }, "expected a row of keys, received the end of the file");
    }
  }

  #parse(chunk: Buffer | undefined): Promise<Error | undefined> {
    return new Promise((resolve) => {
      const done = (error?: Error | null) => resolve(error ?? undefined);
      if (chunk !== undefined) this.#parser.write(chunk, done);
      else this.#parser.once("error", done).end(done);
    });
  }

  #setColumns(row: Row): void {
    this.#columns = readHeader(row, this.#file, this.#itemKeys);
    this.#numbers = Object.fromEntries(
      this.#columns.flatMap(({ key, inputs }, i) => [key, ...inputs].map((name) => [name, i + 1])),
    );
  }

  #itemOf({ fields, line }: Row, columns: readonly Column[]): BatchItem {
    const file = this.#file;
    const fault = faultOf(fields, { file, line }, columns);
    // in a row of the wrong length no field certainly belongs to a column
    const isWhole = fields.length === columns.length;
    const valuesOf = (wanted: KeyRole["role"]) =>
      Object.fromEntries(
        columns.flatMap(({ key, role }, i) => (role === wanted && isWhole ? [[key, fields[i]!]] : [])),
      );
    const named = withFields(valuesOf("field"));
    const origin = { file, line, columns: this.#numbers };
    return { values: valuesOf("value"), ...named, origin, ...(fault !== undefined && { fault }) };
  }
}

function readHeader({ fields, line }: Row, file: string, keys: ItemKeys): Column[] {
  if (fields.length > MAX_COLUMNS) {
    throw itemError({ file, line }, `expected at most ${MAX_COLUMNS} columns, received ${fields.length}`);
  }
  const names = fields.map((field) => field.trim());
  const seen = new Map<string, number>();
  return names.map((header, i): Column => {
    const at = { file, line, column: i + 1 };
    if (header === "" || header.length > MAX_KEY_CHARACTERS) {
      const received = header === "" ? "an empty field" : describe(header);
      throw itemError(at, `expected a key such as 6.text, received ${received}`);
    }
    const column = columnOf(header, keys, names.length === 1, at);
    const before = seen.get(column.key);
    if (before !== undefined) {
      const which = `column ${before + 1} (${names[before]})`;
      throw itemError({ ...at, key: header }, `${which} means the same; leave out one of them`);
    }
    seen.set(column.key, i);
    return column;
  });
}

function columnOf(header: string, keys: ItemKeys, isOnly: boolean, at: FilePosition): Column {
  const role = keys.roleOf(header);
  if ("role" in role && role.role === "value") {
    const { key, inputs } = role;
    const ids = inputs.map(({ nodeId, input }) => `${nodeId}.${input}`);
    return { key, header, role: "value", inputs: ids, takesText: takesText(inputs), takesSeed: takesSeed(inputs) };
  }
  const other = isOnly ? otherSeparator(header) : undefined;
  if (other !== undefined) {
    throw itemError({ ...at, column: undefined }, `expected commas between the columns, received ${other}`);
  }
  if ("reason" in role) throw itemError({ ...at, key: header }, unknownKey(role, header), role.suggestion);
  return { key: header, header, role: role.role, inputs: [], takesText: true, takesSeed: false };
}

function otherSeparator(header: string): string | undefined {
  if (header.includes(";")) return "semicolons";
  return header.includes("\t") ? "tabs" : undefined;
}

function faultOf(fields: readonly string[], row: FilePosition, columns: readonly Column[]): LatentkitError | undefined {
  const at = (i: number): FilePosition => ({ ...row, column: i + 1, key: columns[i]?.header });
  if (fields.length !== columns.length) {
    const which = at(Math.min(fields.length, columns.length));
    return itemError(which, `expected ${columns.length} fields in the row, received ${fields.length}`);
  }
  for (const [i, field] of fields.entries()) {
    if (field === "" && !columns[i]!.takesText) return itemError(at(i), "expected a value, received an empty field");
    if (field.includes(REPLACEMENT)) return itemError(at(i), "expected text in UTF-8, received other bytes");
    const lack = columns[i]!.takesSeed ? lackOfDigits(field) : undefined;
    if (lack !== undefined) return itemError(at(i), `${lack}; save the column as text`);
  }
  return undefined;
}

/** `begun`: line of the row's first character. */
function brokenRow(error: Error, file: string, begun: number): LatentkitError {
  const { code, column } = error as CsvError & { column?: number };
  const at: FilePosition = { file, line: begun, column: typeof column === "number" ? column + 1 : undefined };
  if (code === "CSV_QUOTE_NOT_CLOSED") {
    return itemError(at, "a quoted field starts in this row and is never closed");
  }
  if (code === "CSV_MAX_RECORD_SIZE") {
    return itemError(at, "the row has more than 1 MiB; is a quote not closed?");
  }
  if (code === "CSV_INVALID_CLOSING_QUOTE") {
    return itemError(
      at,
      'in the row that begins here, a comma is missing after a closing quote, or a quote in a text is not doubled ("")',
    );
  }
  return itemError(at, "in the row that begins here, a quote stands inside a field that does not begin with one");
}
