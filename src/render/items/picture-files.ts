import type { Dirent } from "node:fs";
import { opendir } from "node:fs/promises";
import { join } from "node:path";
import { LatentkitError } from "../../base/errors.js";

/** Names that one folder may have. */
const MAX_NAMES = 1_000_000;
const MAX_DEPTH = 32;

/** Positions in the alternatives of a pattern; the next name of each is compared. */
type Cursor = readonly (readonly [path: readonly string[], at: number])[];

/**
 * Paths of the pictures that match a pattern, relative to its folder with "/" and in code-unit order. Names of one folder
 * at a time are held, and those of the folders above it; symbolic links to folders are not followed. Fails with
 * file.not-found and file.read-failed.
 */
export async function* pictureFiles({ folder, paths }: PicturePattern): AsyncGenerator<string, void, undefined> {
  yield* filesBelow(folder, "", withAnyFolders(paths.map((path) => [path, 0] as const)), 0);
}

async function* filesBelow(
  root: string,
  below: string,
  cursor: Cursor,
  depth: number,
): AsyncGenerator<string, void, undefined> {
  const folder = join(root, below);
  for (const name of await namesIn(folder, cursor)) {
    const isFolder = name.endsWith("/");
    if (!isFolder) yield below + name;
    else if (depth < MAX_DEPTH) {
      yield* filesBelow(root, below + name, stepInto(cursor, name.slice(0, -1)), depth + 1);
    } else {
      const message = `Items ${root}: expected folders at most ${MAX_DEPTH} deep, received more.`;
      throw new LatentkitError("file.read-failed", message);
    }
  }
}

/** Names in a folder that lead on, sorted: pictures that match, and folders, with "/" at the end, that hold some. */
async function namesIn(folder: string, cursor: Cursor): Promise<string[]> {
  const names: string[] = [];
  try {
    for await (const entry of await opendir(folder, { bufferSize: 256 })) {
      const name = nameOf(entry, cursor);
      if (name === undefined) continue;
      if (names.length === MAX_NAMES) {
        const message = `Items ${folder}: expected at most ${MAX_NAMES} pictures in a folder, received more.`;
        throw new LatentkitError("file.read-failed", message);
      }
      names.push(name);
    }
  } catch (error) {
    if (error instanceof LatentkitError) throw error;
    const code = (error as NodeJS.ErrnoException).code ?? String(error);
    if (code === "ENOENT")
      throw new LatentkitError("file.not-found", `Items ${folder}: the folder does not exist.`, {}, { cause: error });
    throw new LatentkitError("file.read-failed", `Items ${folder} cannot be read (${code}).`, {}, { cause: error });
  }
  // by code units, so that the order depends on no locale
  return names.sort();
}

function nameOf(entry: Dirent, cursor: Cursor): string | undefined {
  const { name } = entry;
  if (entry.isDirectory()) return stepInto(cursor, name).length > 0 ? `${name}/` : undefined;
  const isMatch = cursor.some(([path, at]) => at === path.length - 1 && matchesName(path[at]!, name));
  return isMatch && isPictureName(name) ? name : undefined;
}

/** The cursor in a folder of that name. */
function stepInto(cursor: Cursor, name: string): Cursor {
  const next = cursor.flatMap(([path, at]) => {
    // the last name is a file's
    if (at >= path.length - 1) return [];
    if (path[at] === "**") return name.startsWith(".") ? [] : [[path, at] as const];
    return matchesName(path[at]!, name) ? [[path, at + 1] as const] : [];
  });
  return withAnyFolders(next);
}

/** "**" stands for no folder, too. */
function withAnyFolders(cursor: Cursor): Cursor {
  const all = new Map<string, Cursor[number]>();
  const ids = new Map<readonly string[], number>();
  const idOf = (path: readonly string[]) => {
    if (!ids.has(path)) ids.set(path, ids.size);
    return ids.get(path);
  };
  for (const [path, start] of cursor) {
    for (let at = start; ; at++) {
      all.set(`${idOf(path)} ${at}`, [path, at]);
      if (path[at] !== "**") break;
    }
  }
  return [...all.values()];
}

/** Endings of files that count as pictures, even if this installation cannot decode them. */
const PICTURE_ENDINGS: ReadonlySet<string> = new Set([
  ".png",
  ".jpg",
  ".jpeg",
  ".webp",
  ".avif",
  ".gif",
  ".tif",
  ".tiff",
  ".bmp",
]);

/** A pattern of paths: a folder, and below it one matcher for each name; "**" stands for any folders. */
export interface PicturePattern {
  /** As the user wrote it; "." for none. */
  readonly folder: string;
  /** Alternatives of "{a,b}". */
  readonly paths: readonly (readonly string[])[];
}

const WILD = /[*?{]/;
const MAX_ALTERNATIVES = 64;
const MAX_CHARACTERS = 4096;

export function isPictureName(name: string): boolean {
  const dot = name.lastIndexOf(".");
  return dot > 0 && PICTURE_ENDINGS.has(name.slice(dot).toLowerCase());
}

export const hasWildcard = (path: string): boolean => WILD.test(path);

/**
 * Reads a path with the wildcards "*", "?", "{a,b}" and, as a whole name, "**". The folder is the part before the
 * first of them. Fails with usage.invalid.
 */
export function readPattern(text: string): PicturePattern {
  if (text.length > MAX_CHARACTERS) {
    const expected = `a pattern of at most ${MAX_CHARACTERS} characters`;
    throw new LatentkitError("usage.invalid", `Items: expected ${expected}, received ${text.length}.`);
  }
  const names = text.split("/");
  const first = names.findIndex(hasWildcard);
  const at = first === -1 ? names.length - 1 : first;
  const folder = names.slice(0, at).join("/");
  const rest = names.slice(at).join("/");
  const paths = alternatives(rest).map((path) => {
    const names = path.split("/").filter((name) => name !== "");
    return names.at(-1) === "**" ? [...names, "*"] : names;
  });
  return { folder: folder === "" ? (text.startsWith("/") ? "/" : ".") : folder, paths };
}

/** A pattern without its braces, one after the other from the left. */
function alternatives(pattern: string): string[] {
  let done = [""];
  for (let at = 0; at < pattern.length; at++) {
    const end = pattern[at] === "{" ? pattern.indexOf("}", at) : -1;
    // a brace that is never closed is a character
    const parts = end === -1 ? [pattern[at]!] : pattern.slice(at + 1, end).split(",");
    if (end !== -1) at = end;
    if (done.length * parts.length > MAX_ALTERNATIVES) {
      const expected = `at most ${MAX_ALTERNATIVES} alternatives in braces`;
      throw new LatentkitError("usage.invalid", `Items ${pattern}: expected ${expected}, received more.`);
    }
    done = done.flatMap((start) => parts.map((part) => start + part));
  }
  return done;
}

/**
 * Whether a name matches a pattern of "*" and "?"; a name that begins with a dot only one that does, too. Time is at
 * most the product of both lengths.
 *
 * @internal
 */
export function matchesName(pattern: string, name: string): boolean {
  if (name.startsWith(".") && !pattern.startsWith(".")) return false;
  const [wanted, given] = [[...pattern], [...name]];
  let [p, n, star, resume] = [0, 0, -1, 0];
  while (n < given.length) {
    if (wanted[p] === "*") {
      star = p++;
      resume = n;
    } else if (p < wanted.length && (wanted[p] === "?" || wanted[p] === given[n])) {
      p++;
      n++;
    } else if (star !== -1) {
      // the last star takes one character more
      p = star + 1;
      n = ++resume;
    } else return false;
  }
  while (wanted[p] === "*") p++;
  return p === wanted.length;
}
