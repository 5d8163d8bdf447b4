import { describe, LatentkitError } from "../../base/errors.js";
import { isPlainObject, keysInOrder, parseJson } from "../../io/json/lossless.js";
import { lackOfDigits } from "../fill/seed-digits.js";
import { type ItemKeys, takesSeed, unknownKey, withFields } from "./graph-keys.js";
import { type BatchItem, type ItemOrigin, type ItemParser, itemError } from "./item.js";

const MAX_LINE_BYTES = 1 << 20;
const NEWLINE = 10;

/** Values of a line by their keys. Throws items.invalid for a line of another form. */
type ReadLine = (text: string, origin: ItemOrigin) => Readonly<Record<string, unknown>>;

/**
 * Items of a file with one item a line, keys as in `set`; blank lines are left out. A line that `read` refuses, is too
 * long or has an unknown key is an item with a fault.
 */
export class LineParser implements ItemParser {
  readonly keys: readonly string[] = [];
  readonly fields: readonly string[] = [];
  #line = 1;
  /** Bytes of the line so far; dropped if it is too long. */
  #pending: Buffer[] = [];
  #length = 0;
  readonly #file: string;
  readonly #itemKeys: ItemKeys;
  readonly #read: ReadLine;

  constructor(file: string, itemKeys: ItemKeys, read: ReadLine) {
    this.#file = file;
    this.#itemKeys = itemKeys;
    this.#read = read;
  }

  push(chunk: Buffer | undefined, items: BatchItem[]): void {
    if (chunk === undefined) {
      if (this.#length > 0) this.#endLine(items);
      return;
    }
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      this.#add(chunk.subarray(start, end));
      this.#endLine(items);
      start = end + 1;
    }
    this.#add(chunk.subarray(start));
  }

  #add(bytes: Buffer): void {
    this.#length += bytes.length;
    if (this.#length <= MAX_LINE_BYTES) this.#pending.push(bytes);
    else this.#pending = [];
  }

  #endLine(items: BatchItem[]): void {
    const origin: ItemOrigin = { file: this.#file, line: this.#line++ };
    const pending = this.#pending;
    const length = this.#length;
    this.#pending = [];
    this.#length = 0;
    try {
      if (length > MAX_LINE_BYTES) throw itemError(origin, "expected a line of at most 1 MiB");
      const item = readItem(Buffer.concat(pending), origin, this.#itemKeys, this.#read);
      if (item !== undefined) items.push({ ...item, origin });
    } catch (error) {
      if (!(error instanceof LatentkitError)) throw error;
      items.push({ values: {}, origin, fault: error });
    }
  }
}

/** Values and fields of one line; undefined for a blank one. */
function readItem(bytes: Buffer, origin: ItemOrigin, keys: ItemKeys, read: ReadLine): BatchItem | undefined {
  let text: string;
  try {
    // takes off a byte-order mark, too
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw itemError(origin, "expected text in UTF-8, received other bytes");
  }
  if (text.trim() === "") return undefined;
  const object = read(text, origin);
  const values: Record<string, unknown> = {};
  const fields: Record<string, unknown> = {};
  for (const name of keysInOrder(object)) {
    const role = keys.roleOf(name);
    if ("reason" in role) throw itemError(origin, unknownKey(role, name), role.suggestion);
    if (role.role === "field") fields[name] = object[name];
    if (role.role !== "value") continue;
    const { key, inputs } = role;
    if (Object.hasOwn(values, key))
      throw itemError({ ...origin, key: name }, `another key of the line also sets ${key}`);
    const lack = takesSeed(inputs) ? lackOfDigits(object[name]) : undefined;
    if (lack !== undefined) throw itemError({ ...origin, key: name }, lack);
    values[key] = object[name];
  }
  return { values, ...withFields(fields) };
}

/** The values of a JSON object; numbers keep every digit. */
export function readObject(text: string, origin: ItemOrigin): Readonly<Record<string, unknown>> {
  const { file, line } = origin;
  let object: unknown;
  try {
    object = parseJson(text, { what: file, line });
  } catch (error) {
    if (!(error instanceof LatentkitError)) throw error;
    // a list, an object over several lines, or commas between objects
    const hint = error.message.includes("the end of the text") ? " Each line has one whole object." : "";
    throw new LatentkitError("items.invalid", `${error.message}${hint}`, {}, { cause: error });
  }
  if (isPlainObject(object)) return object;
  throw itemError(origin, `expected an object of values such as {"6.text": "a fox"}, received ${describe(object)}`);
}

/** The prompt that a line is. */
export function readPrompt(text: string, origin: ItemOrigin): Readonly<Record<string, unknown>> {
  // files for A1111 may have options in a line
  if (/^\s*--\w/.test(text)) throw itemError(origin, `expected a prompt, received ${describe(text)}`);
  return { prompt: text.trim() };
}
