import { createReadStream } from "node:fs";
import { describe, LatentkitError } from "../../errors.js";
import { isPlainObject, keysInOrder, parseJson } from "../../io/json-lossless.js";
import type { BatchItem, ItemOrigin } from "../batch/types.js";
import type { GraphKeys } from "./graph-keys.js";
import { faultyItem, itemError, unreadable } from "./item-error.js";
import type { ItemFile } from "./source.js";

const MAX_LINE_BYTES = 1 << 20;
const NEWLINE = 10;

/** A line of a file; `bytes` is undefined where it is too long. */
interface Line {
  readonly number: number;
  readonly bytes: Buffer | undefined;
}

/**
 * Reads items from a file with one JSON object a line, keys as in `set`; numbers keep every digit, blank lines are left
 * out. Lines are read as they are asked for. A line that is no such object, or has a key that names nothing in the
 * graph, is an item with a fault.
 */
export async function readJsonl(path: string, keys: GraphKeys): Promise<ItemFile> {
  const lines = readLines(path);
  // a file that is not there is told at once
  const first = await lines.next();
  return { keys: [], items: toItems(first.done ? [] : rejoin(first.value, lines), path, keys) };
}

async function* rejoin(first: Line, rest: AsyncIterable<Line>): AsyncGenerator<Line, void, undefined> {
  yield first;
  yield* rest;
}

async function* toItems(
  lines: Iterable<Line> | AsyncIterable<Line>,
  file: string,
  keys: GraphKeys,
): AsyncGenerator<BatchItem, void, undefined> {
  for await (const { number, bytes } of lines) {
    const origin: ItemOrigin = { file, line: number };
    if (bytes === undefined) {
      yield faultyItem(origin, itemError(origin, "expected a line of at most 1 MiB"));
      continue;
    }
    try {
      const values = readLine(bytes, origin, keys);
      if (values !== undefined) yield { values, origin };
    } catch (error) {
      if (!(error instanceof LatentkitError)) throw error;
      yield faultyItem(origin, error);
    }
  }
}

/** Values of one line; undefined for a blank one. */
function readLine(bytes: Buffer, origin: ItemOrigin, keys: GraphKeys): Record<string, unknown> | undefined {
  const { file, line } = origin;
  let text: string;
  try {
    // takes off a byte-order mark, too
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw itemError(origin, "expected text in UTF-8, received other bytes");
  }
  if (text.trim() === "") return undefined;
  let values: unknown;
  try {
    values = parseJson(text, { what: file, line });
  } catch (error) {
    if (!(error instanceof LatentkitError)) throw error;
    throw new LatentkitError("items.invalid", error.message, {}, { cause: error });
  }
  if (!isPlainObject(values)) {
    throw itemError(origin, `expected an object of values such as {"6.text": "a fox"}, received ${describe(values)}`);
  }
  for (const key of keysInOrder(values)) {
    const found = keys.find(key);
    if ("reason" in found) throw itemError(origin, found.reason, found.suggestion);
  }
  return values;
}

/** Lines of a file, in bounded memory whatever it holds. */
async function* readLines(file: string): AsyncGenerator<Line, void, undefined> {
  let number = 1;
  let pending: Buffer[] = [];
  let length = 0;
  const end = (): Line => {
    const bytes = length > MAX_LINE_BYTES ? undefined : Buffer.concat(pending);
    pending = [];
    length = 0;
    return { number: number++, bytes };
  };
  try {
    for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>) {
      let start = 0;
      for (let next = chunk.indexOf(NEWLINE); next !== -1; next = chunk.indexOf(NEWLINE, start)) {
        keep(chunk.subarray(start, next));
        yield end();
        start = next + 1;
      }
      keep(chunk.subarray(start));
    }
  } catch (error) {
    throw unreadable(file, error);
  }
  if (length > 0) yield end();

  function keep(bytes: Buffer): void {
    length += bytes.length;
    if (length <= MAX_LINE_BYTES) pending.push(bytes);
    else pending = [];
  }
}
