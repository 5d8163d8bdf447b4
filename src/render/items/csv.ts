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
/** Characters between columns, as spreadsheets of different countries save them, with their names in messages. */
const SEPARATORS: ReadonlyMap<string, string> = new Map([
  [",", "comma"],
  [";", "semicolon"],
  ["\t", "tab"],
]);
/** Bytes of the first row that tell what is between the columns. */
const MAX_HEAD_BYTES = 1 << 16;
/** First field of the row in which Excel is told the separator. */
const SEPARATOR_ROW = "sep=";
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
  readonly takesFraction: boolean;
  /** Whether it has no key, as columns beside a table in a spreadsheet do. */
  readonly mustBeEmpty: boolean;
}

// A row that cannot be read fails only that item; broken quoting ends the items, since the next row's start is
// unknown.
// Values stay text until they meet the input, so every digit and zero arrives as written.
/**
 * Items of a CSV file with commas, semicolons or tabs between the columns: the first row has keys as in `set`, each
 * further one is an item, its values texts; rows without any text are left out. Fails with items.invalid if a column is
 * for nothing or comes twice, and at broken quoting; a row whose fields are too few, too many, empty for a number,
 * shortened for a seed or an error of a spreadsheet is an item with a fault.
 */
export class CsvParser implements ItemParser {
  #columns: readonly Column[] | undefined;
  #numbers: Readonly<Record<string, number>> = {};
  #rows: Row[] = [];
  #line = 1;
  /** The bytes before the parser begins, which tell the separator. */
  #head: Buffer = Buffer.alloc(0);
  #separator = ",";
  #parser: Parser | undefined;
  readonly #file: string;
  readonly #itemKeys: ItemKeys;

  constructor(file: string, itemKeys: ItemKeys) {
    this.#file = file;
    this.#itemKeys = itemKeys;
  }

  #createParser(): Parser {
    const parser = new Parser({
      bom: true,
      delimiter: this.#separator,
      // all three at once: files are put together from others
      record_delimiter: ["\r\n", "\n", "\r"],
      relax_column_count: true,
      max_record_size: MAX_ROW_BYTES,
      raw: true,
      on_record: (record: unknown) => {
        const { raw, record: fields } = record as { raw: string; record: string[] };
        const isBlank = fields.every((field) => field.trim() === "") && !raw.includes('"');
        if (!isBlank) this.#rows.push({ fields, line: this.#line });
        this.#line += raw.match(LINE_BREAK)?.length ?? 0;
        return null;
      },
    });
    // `push` reports it; without a listener it would end the process
    parser.on("error", () => {});
    return parser;
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
      if (this.#columns !== undefined) items.push(this.#itemOf(row, this.#columns));
      else if (!isSeparatorRow(row)) this.#setColumns(row);
    }
    if (failure !== undefined) throw brokenRow(failure, this.#file, this.#line, this.#separator);
    if (chunk === undefined && this.#columns === undefined) {
      throw itemError({ file: this.#file, line: 1 }, "expected a row of keys, received the end of the file");
    }
  }

  async #parse(chunk: Buffer | undefined): Promise<Error | undefined> {
    if (this.#parser !== undefined) return parsed(this.#parser, chunk);
    this.#head = Buffer.concat([this.#head, chunk ?? Buffer.alloc(0)]);
    const [line = "", ...more] = this.#head.toString("utf8", 0, MAX_HEAD_BYTES).trimStart().split(LINE_BREAK, 2);
    if (chunk !== undefined && more.length === 0 && this.#head.length < MAX_HEAD_BYTES) return undefined;
    this.#separator = separatorOf(line, this.#itemKeys);
    this.#parser = this.#createParser();
    const failure = await parsed(this.#parser, this.#head);
    return failure !== undefined || chunk !== undefined ? failure : parsed(this.#parser, undefined);
  }

  #setColumns(row: Row): void {
    this.#columns = readHeader(row, this.#file, this.#itemKeys);
    this.#numbers = Object.fromEntries(
      this.#columns.flatMap(({ key, inputs }, i) => (key === "" ? [] : [key, ...inputs].map((name) => [name, i + 1]))),
    );
  }

  #itemOf({ fields, line }: Row, columns: readonly Column[]): BatchItem {
    const file = this.#file;
    const fault = faultOf(fields, { file, line }, columns, this.#separator);
    // in a row of the wrong length no field certainly belongs to a column
    const isWhole = fields.length === columns.length;
    const textOf = (i: number) => (columns[i]!.takesFraction ? this.#withPoint(fields[i]!) : fields[i]!);
    const valuesOf = (wanted: KeyRole["role"]) =>
      Object.fromEntries(columns.flatMap(({ key, role }, i) => (role === wanted && isWhole ? [[key, textOf(i)]] : [])));
    const named = withFields(valuesOf("field"));
    const origin = { file, line, columns: this.#numbers };
    return { values: valuesOf("value"), ...named, origin, ...(fault !== undefined && { fault }) };
  }

  /** A number with a decimal point: where commas are in numbers, semicolons are between columns. 1,234 stays, which may be 1234. */
  #withPoint(field: string): string {
    const [, whole = "", fraction = ""] =
      this.#separator === ";" ? (/^([+-]?\d+),(\d+)$/.exec(field.trim()) ?? []) : [];
    const isThousand = fraction.length === 3 && Number(whole) !== 0;
    return whole === "" || isThousand ? field : `${whole}.${fraction}`;
  }
}

/** Parses a chunk, undefined being the end, and returns what failed. */
function parsed(parser: Parser, chunk: Buffer | undefined): Promise<Error | undefined> {
  return new Promise((resolve) => {
    const done = (error?: Error | null) => resolve(error ?? undefined);
    if (chunk !== undefined) parser.write(chunk, done);
    else parser.once("error", done).end(done);
  });
}

/** The separator of which the first row has most, outside quotes; a comma if the row is one key. */
function separatorOf(line: string, keys: ItemKeys): string {
  const told = line.toLowerCase().startsWith(SEPARATOR_ROW) ? line.slice(SEPARATOR_ROW.length) : "";
  if (SEPARATORS.has(told)) return told;
  const key = line.trim();
  const role = key.length <= MAX_KEY_CHARACTERS ? keys.roleOf(key) : undefined;
  if (role !== undefined && "role" in role && role.role === "value") return ",";
  const bare = line.replace(/"[^"]*"/g, "");
  const times = [...SEPARATORS.keys()].map((separator) => [bare.split(separator).length, separator] as const);
  return times.reduce((most, each) => (each[0] > most[0] ? each : most))[1];
}

const isSeparatorRow = ({ fields: [first, second, third], line }: Row): boolean =>
  line === 1 && first?.toLowerCase() === SEPARATOR_ROW && second === "" && third === undefined;

function readHeader({ fields, line }: Row, file: string, keys: ItemKeys): Column[] {
  if (fields.length > MAX_COLUMNS) {
    throw itemError({ file, line }, `expected at most ${MAX_COLUMNS} columns, received ${fields.length}`);
  }
  const names = fields.map((field) => field.trim());
  const seen = new Map<string, number>();
  return names.map((header, i): Column => {
    const at = { file, line, column: i + 1 };
    if (header.length > MAX_KEY_CHARACTERS)
      throw itemError(at, `expected a key such as 6.text, received ${describe(header)}`);
    if (header === "") return unnamedColumn(keys);
    const column = columnOf(header, keys, at);
    const before = seen.get(column.key);
    if (before !== undefined) {
      const which = `column ${before + 1} (${names[before]})`;
      throw itemError({ ...at, key: header }, `${which} means the same; leave out one of them`);
    }
    seen.set(column.key, i);
    return column;
  });
}

/** Facts of a column that sets nothing. */
const SETS_NOTHING = { inputs: [], takesText: true, takesSeed: false, takesFraction: false };

/** A column that has no key: it may hold nothing, unless columns that match nothing are ignored. */
function unnamedColumn(keys: ItemKeys): Column {
  const mustBeEmpty = "reason" in keys.roleOf("");
  return { key: "", header: "", role: "extra", ...SETS_NOTHING, mustBeEmpty };
}

function columnOf(header: string, keys: ItemKeys, at: FilePosition): Column {
  const role = keys.roleOf(header);
  if ("reason" in role) throw itemError({ ...at, key: header }, unknownKey(role, header), role.suggestion);
  if (role.role !== "value") return { key: header, header, role: role.role, ...SETS_NOTHING, mustBeEmpty: false };
  const { key, inputs } = role;
  return {
    key,
    header,
    role: "value",
    inputs: inputs.map(({ nodeId, input }) => `${nodeId}.${input}`),
    takesText: takesText(inputs),
    takesSeed: takesSeed(inputs),
    takesFraction: inputs.some(({ type }) => type === "FLOAT"),
    mustBeEmpty: false,
  };
}

const FORMULA = "an error of a spreadsheet, which takes texts that begin with =, +, - or @ for formulas";
/** Errors that a spreadsheet saves in place of a cell's text. */
const CELL_ERRORS: ReadonlySet<string> = new Set(
  "#NAME? #NOM? #NOME? #¿NOMBRE? #VALUE! #REF! #DIV/0! #NUM! #NULL! #N/A #NV #WERT! #BEZUG!".split(" "),
);

function faultOf(
  fields: readonly string[],
  row: FilePosition,
  columns: readonly Column[],
  separator: string,
): LatentkitError | undefined {
  const at = (i: number): FilePosition => ({ ...row, column: i + 1, key: columns[i]?.header });
  if (fields.length !== columns.length) {
    const which = at(Math.min(fields.length, columns.length));
    const expected = `expected ${columns.length} ${columns.length === 1 ? "field" : "fields"} in the row`;
    const quotes = `; a text that contains a ${SEPARATORS.get(separator)} needs double quotes`;
    const hint = fields.length > columns.length ? quotes : "";
    return itemError(which, `${expected}, received ${fields.length}${hint}`);
  }
  for (const [i, field] of fields.entries()) {
    if (columns[i]!.mustBeEmpty && field.trim() !== "")
      return itemError(
        at(i),
        `expected nothing below an empty key, received ${describe(field)}; pass --extra-columns to ignore the column`,
      );
    if (columns[i]!.role === "value" && CELL_ERRORS.has(field.trim()))
      return itemError(at(i), `expected a value, received ${field.trim()}, ${FORMULA}`);
    if (field === "" && !columns[i]!.takesText) return itemError(at(i), "expected a value, received an empty field");
    if (field.includes(REPLACEMENT))
      return itemError(at(i), "expected text in UTF-8, received other bytes; save the file as CSV UTF-8");
    const lack = columns[i]!.takesSeed ? lackOfDigits(field) : undefined;
    if (lack !== undefined) return itemError(at(i), `${lack}; save the column as text`);
  }
  return undefined;
}

/** `begun`: line of the row's first character. */
function brokenRow(error: Error, file: string, begun: number, separator: string): LatentkitError {
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
      `in the row that begins here, a ${SEPARATORS.get(separator)} is missing after a closing quote, or a quote in a text is not doubled ("")`,
    );
  }
  return itemError(at, "in the row that begins here, a quote stands inside a field that does not begin with one");
}
