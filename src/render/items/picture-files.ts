import type { Dirent } from "node:fs";
import { opendir } from "node:fs/promises";
import { join } from "node:path";
import { LatentkitError } from "../../base/errors.js";
import { isPictureName, matchesName, type PicturePattern } from "./picture-pattern.js";

/** Names that one folder may have. */
const MAX_NAMES = 1_000_000;
const MAX_DEPTH = 32;

/** Positions in the alternatives of a pattern, of which the next name of each is compared. */
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
      throw new LatentkitError("file.not-found", `Items ${folder}: there is no such folder.`, {}, { cause: error });
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
