import { realpath, stat } from "node:fs/promises";
import { join, posix, relative, resolve, sep } from "node:path";
import { describe, LatentkitError } from "../../base/errors.js";
import { isInside } from "../../io/regular-file.js";
import type { GraphKeys } from "./graph-keys.js";
import type { BatchItem } from "./item.js";
import { hasWildcard, isPictureName, type PicturePattern, pictureFiles, readPattern } from "./picture-files.js";

/** A picture's file as an item of a batch; `picturesIn` makes one. */
export interface PictureFile {
  /** Below the folder before the first wildcard, with "/". */
  readonly image: string;
  /** The file's name without folder and ending. */
  readonly name: string;
}

/** Pictures of a folder or pattern. As items of `batch` they fill the graph's image input. */
export class Pictures implements AsyncIterable<PictureFile> {
  constructor(readonly pattern: string) {}

  async *[Symbol.asyncIterator](): AsyncGenerator<PictureFile, void, undefined> {
    for await (const image of pictureFiles(await patternOf(this.pattern))) yield { image, name: stem(image) };
  }
}

/**
 * Pictures of a folder (`photos`) or of a pattern (`photos/**\/*.{jpg,png}`, with "*", "?", "{a,b}" and "**") as items of
 * a batch, in code-unit order of their names. They are listed as they are needed. Fails with usage.invalid.
 */
export function picturesIn(pattern: string): Pictures {
  if (typeof pattern !== "string" || pattern === "" || pattern.includes("\0")) {
    const expected = "a folder of pictures or a pattern such as photos/*.png";
    throw new LatentkitError("usage.invalid", `picturesIn: expected ${expected}, received ${describe(pattern)}.`);
  }
  return new Pictures(pattern);
}

/** Folders of a batch's input images. */
export interface InputFolders {
  /** Folder that the application names. */
  readonly named?: string;
  /** Folder if the application does not name one. */
  readonly usual: string;
}

/** Template field of a picture's name. */
const NAME = "name";

/**
 * Opens the pictures of a pattern as items that fill `{{image}}`, else the graph's only image input that `taken` does not
 * set, and `{{name}}`. Names are relative to the input folder; if the pictures lie outside it and none is named, their
 * own folder becomes the input folder. Fails with usage.invalid, items.invalid and file.not-found.
 */
export async function openPictures(
  { pattern }: Pictures,
  keys: GraphKeys,
  taken: Iterable<string>,
  folders: InputFolders,
): Promise<PictureItems> {
  const read = await patternOf(pattern);
  const { key, others } = imageKey(pattern, keys, taken);
  const { inputDir, prefix } = await placeOf(pattern, read.folder, folders);
  if (prefix === undefined && others.length > 0) {
    const message = `Items ${pattern}: expected pictures inside the input folder ${folders.usual}, because ${others[0]} reads from it, too; --input (inputDir) names a folder that holds both.`;
    throw new LatentkitError("usage.invalid", message);
  }
  const isNamed = !("reason" in keys.find(NAME));
  const items = new PictureItems(read, inputDir, prefix ?? "", key, isNamed);
  if (!(await items.isAtEnd())) return items;
  throw new LatentkitError("items.invalid", `${pattern}: expected at least one picture, received none.`);
}

/** Items of a folder's pictures, listed as they are asked for. */
class PictureItems {
  readonly keys: readonly string[];
  /** Fields of the name template beside the keys. */
  readonly fields: readonly string[] = [NAME];
  readonly #files: AsyncGenerator<string, void, undefined>;
  #ahead: IteratorResult<string, void> | undefined;
  readonly #pattern: PicturePattern;
  readonly #prefix: string;
  readonly #key: string;
  readonly #isNamed: boolean;

  constructor(
    pattern: PicturePattern,
    /** Folder that names are relative to; absolute. */
    readonly inputDir: string,
    prefix: string,
    key: string,
    isNamed: boolean,
  ) {
    this.#pattern = pattern;
    this.#prefix = prefix;
    this.#key = key;
    this.#isNamed = isNamed;
    this.keys = isNamed ? [key, NAME] : [key];
    this.#files = pictureFiles(pattern);
  }

  async isAtEnd(): Promise<boolean> {
    this.#ahead ??= await this.#files.next();
    return this.#ahead.done === true;
  }

  /** The next item; undefined at the end. */
  async next(): Promise<BatchItem | undefined> {
    if (await this.isAtEnd()) return undefined;
    const file = this.#ahead!.value as string;
    this.#ahead = undefined;
    const name = stem(file);
    const values = { [this.#key]: this.#prefix + file, ...(this.#isNamed && { [NAME]: name }) };
    return { values, fields: { [NAME]: name }, state: await stateOf(join(this.#pattern.folder, file)) };
  }

  async close(): Promise<void> {
    await this.#files.return();
  }
}

/** A picture that changes is another item, which is rendered again. */
async function stateOf(path: string): Promise<string> {
  try {
    const { size, mtimeMs } = await stat(path);
    return `${size} ${mtimeMs}`;
  } catch {
    // its item fails when it is read
    return "unreadable";
  }
}

const stem = (file: string) => posix.parse(file).name;

/** A path that exists is meant as it is, wildcards or not. */
async function patternOf(text: string): Promise<PicturePattern> {
  const path = text.split(sep).join("/");
  const info = await stat(text).catch(() => undefined);
  if (info?.isDirectory()) return { folder: text, paths: [["*"]] };
  if (info !== undefined && isPictureName(text)) {
    const { dir, base } = posix.parse(path);
    return { folder: dir === "" ? "." : dir, paths: [[base]] };
  }
  if (hasWildcard(path)) return readPattern(path);
  const expected = "a folder of pictures, or a pattern such as 'photos/*.png'";
  if (info !== undefined) throw new LatentkitError("usage.invalid", `Items ${text}: expected ${expected}.`);
  throw new LatentkitError("file.not-found", `Items ${text}: expected ${expected}; the file does not exist.`);
}

/** Key that items set, and the graph's other image inputs. */
function imageKey(pattern: string, keys: GraphKeys, taken: Iterable<string>): { key: string; others: string[] } {
  const isTaken = new Set(taken);
  const inputs = keys.pictures().map(({ nodeId, input }) => `${nodeId}.${input}`);
  const placeholder = keys.find("image");
  if (!("reason" in placeholder)) {
    const filled = new Set(placeholder.map(({ nodeId, input }) => `${nodeId}.${input}`));
    return { key: "image", others: inputs.filter((key) => !filled.has(key)) };
  }
  const free = inputs.filter((key) => !isTaken.has(key));
  if (free.length === 1) return { key: free[0]!, others: inputs.filter((key) => key !== free[0]) };
  const found = free.length === 0 ? "none" : free.join(" and ");
  const expected = "one image input that nothing else sets, or {{image}} in the graph";
  throw new LatentkitError("usage.invalid", `Items ${pattern}: expected ${expected}, received ${found}.`);
}

/** The input folder, and the prefix of the pictures' names; undefined if their own folder becomes it. */
async function placeOf(
  pattern: string,
  folder: string,
  { named, usual }: InputFolders,
): Promise<{ inputDir: string; prefix: string | undefined }> {
  const input = resolve(named ?? usual);
  const own = resolve(folder);
  const [realInput, realOwn] = await Promise.all([input, own].map((path) => realpath(path).catch(() => path)));
  if (isInside(realInput!, realOwn!)) {
    const below = relative(realInput!, realOwn!).split(sep).join("/");
    return { inputDir: input, prefix: below === "" ? "" : `${below}/` };
  }
  if (named === undefined) return { inputDir: own, prefix: undefined };
  const message = `Items ${pattern}: expected pictures inside the input folder ${named}, received ${describe(folder)}.`;
  throw new LatentkitError("usage.invalid", message);
}
