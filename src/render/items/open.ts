import { extname } from "node:path";
import { LatentkitError } from "../../base/errors.js";
import { encodingOf, openRegular } from "../../io/regular-file.js";
import { CsvParser } from "./csv.js";
import { createItemKeys, type ExtraKeys, type GraphKeys, type ItemKeys } from "./graph-keys.js";
import { type BatchItem, type ItemParser, itemError } from "./item.js";
import { LineParser, readObject, readPrompt } from "./lines.js";

type Parse = (file: string, keys: ItemKeys) => ItemParser;

const parseCsv: Parse = (file, keys) => new CsvParser(file, keys);
const parseObjects: Parse = (file, keys) => new LineParser(file, keys, readObject);

const PARSERS: Readonly<Record<string, Parse>> = {
  ".csv": parseCsv,
  ".tsv": parseCsv,
  ".jsonl": parseObjects,
  ".ndjson": parseObjects,
  ".txt": (file, keys) => new LineParser(file, keys, readPrompt),
};

/** Whether a path names a file of items by its end. */
export const isItemFile = (path: string): boolean => Object.hasOwn(PARSERS, extname(path).toLowerCase());

/**
 * Opens a file of items by the end of its name and reads up to the first item; a file without one is refused. Fails
 * with usage.invalid, items.invalid, file.not-found and file.read-failed.
 */
export async function openItems(path: string, keys: GraphKeys, extra?: ExtraKeys): Promise<ItemFile> {
  const parse = PARSERS[extname(path).toLowerCase()];
  if (parse === undefined) {
    const expected =
      "a file named .csv, .tsv, .jsonl or .txt, a folder of pictures or a pattern such as 'photos/*.png'";
    throw new LatentkitError("usage.invalid", `Items ${path}: expected ${expected}.`);
  }
  return begun(path, new ItemFile(path, parse(path, createItemKeys(keys, extra)), chunksOf(path)));
}

const OBJECT_START = /^\s*\{/;
const BLANK = /^\s*$/;
/** Blanks before the first item. */
const MAX_BLANK_BYTES = 1 << 12;

/**
 * Opens items that a stream brings, `name` in messages: JSON lines if its first character is "{", CSV otherwise. Reads
 * up to the first item, and fails as openItems.
 */
export async function openItemStream(
  stream: AsyncIterable<Buffer>,
  name: string,
  keys: GraphKeys,
  extra?: ExtraKeys,
): Promise<ItemFile> {
  const chunks = stream[Symbol.asyncIterator]();
  let head = Buffer.alloc(0);
  for (let isEnd = false; !isEnd && head.length < MAX_BLANK_BYTES && BLANK.test(textOf(head)); ) {
    const { value, done } = await chunks.next();
    isEnd = done === true;
    if (!isEnd) head = Buffer.concat([head, value as Buffer]);
  }
  const parse = OBJECT_START.test(textOf(head)) ? parseObjects : parseCsv;
  return begun(name, new ItemFile(name, parse(name, createItemKeys(keys, extra)), withHead(head, chunks)));
}

/** Text of the first bytes, without a mark. */
const textOf = (head: Buffer): string => new TextDecoder(encodingOf(head)).decode(head);

async function* withHead(head: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  try {
    yield head;
    for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value;
  } finally {
    await rest.return?.();
  }
}

async function begun(path: string, file: ItemFile): Promise<ItemFile> {
  // an export that failed leaves such a file; a batch of nothing would look like success
  if (await file.isAtEnd()) {
    throw new LatentkitError("items.invalid", `${path}: expected at least one item, received none.`);
  }
  return file;
}

type Decoder = InstanceType<typeof TextDecoder>;

/** Items of a file, read a chunk at a time as they are asked for. */
export class ItemFile {
  /** Items of the last chunk, and how many of them were taken. */
  #items: BatchItem[] = [];
  #taken = 0;
  #isRead = false;
  #isFirst = true;
  /** Decodes UTF-16; undefined for a text in UTF-8. */
  #decoder: Decoder | undefined;
  #failure: { readonly error: LatentkitError } | undefined;
  readonly #path: string;
  readonly #parser: ItemParser;
  readonly #chunks: AsyncIterator<Buffer>;

  constructor(path: string, parser: ItemParser, chunks: AsyncIterator<Buffer>) {
    this.#path = path;
    this.#parser = parser;
    this.#chunks = chunks;
  }

  /** Keys that every item sets, if the file names them before its items. */
  get keys(): readonly string[] {
    return this.#parser.keys;
  }

  /** Fields of the name template that every item has besides, if the file names them before its items. */
  get fields(): readonly string[] {
    return this.#parser.fields;
  }

  /** Reads the next chunk if the last one has no items left. Fails once the items before the failure are taken. */
  async isAtEnd(): Promise<boolean> {
    while (this.#taken === this.#items.length) {
      if (this.#failure !== undefined) throw this.#failure.error;
      if (this.#isRead) return true;
      await this.#readChunk();
    }
    return false;
  }

  /** The next item; undefined at the end. */
  async next(): Promise<BatchItem | undefined> {
    return (await this.isAtEnd()) ? undefined : this.#items[this.#taken++];
  }

  async close(): Promise<void> {
    await this.#chunks.return?.();
  }

  #inUtf8(decoder: Decoder, chunk: Buffer | undefined): Buffer {
    try {
      return Buffer.from(decoder.decode(chunk, { stream: chunk !== undefined }));
    } catch {
      throw itemError({ file: this.#path, line: 1 }, "expected text in UTF-8 or UTF-16, received other bytes");
    }
  }

  async #readChunk(): Promise<void> {
    this.#items = [];
    this.#taken = 0;
    try {
      const { value, done } = await this.#chunks.next();
      this.#isRead = done === true;
      if (this.#isFirst && !done && encodingOf(value) !== "utf-8")
        this.#decoder = new TextDecoder(encodingOf(value), { fatal: true });
      this.#isFirst = false;
      const bytes = this.#decoder === undefined ? value : this.#inUtf8(this.#decoder, done ? undefined : value);
      if (bytes !== undefined) await this.#parser.push(bytes, this.#items);
      if (done) await this.#parser.push(undefined, this.#items);
    } catch (error) {
      this.#failure = { error: unreadable(this.#path, error) };
      await this.close();
    }
  }
}

/** Chunks of a file of 64 KiB. Nothing is open before the first is asked for. */
async function* chunksOf(path: string): AsyncGenerator<Buffer, void> {
  const handle = await openRegular(path);
  // the stream closes it
  yield* handle.createReadStream() as AsyncIterable<Buffer>;
}

function unreadable(file: string, error: unknown): LatentkitError {
  if (error instanceof LatentkitError) return error;
  const code = (error as NodeJS.ErrnoException | null)?.code ?? String(error);
  if (code === "ENOENT") {
    return new LatentkitError("file.not-found", `Items ${file}: the file does not exist.`, {}, { cause: error });
  }
  return new LatentkitError("file.read-failed", `Items ${file} cannot be read (${code}).`, {}, { cause: error });
}
