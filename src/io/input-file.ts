import { createHash } from "node:crypto";
import { promises } from "node:fs";
import { dirname, isAbsolute, resolve, win32 } from "node:path";
import { closest, describe, LatentkitError } from "../errors.js";
import { isInside, MAX_PATH_CHARACTERS } from "./path-inside.js";

/** Larger files are refused before they are read. */
const MAX_BYTES = 2 ** 30;

/**
 * Reads a file of the input folder. `name` is relative to it, with folders, and may end in " [input]" as the host writes
 * it. Fails with path.outside where it would leave the folder, by a symbolic link too, with file.not-found and
 * file.read-failed.
 */
export async function readInputFile(inputFolder: string, name: string): Promise<Buffer> {
  const path = resolveInput(inputFolder, name);
  try {
    const [root, real] = await Promise.all([promises.realpath(inputFolder), promises.realpath(path)]);
    if (!isInside(root, real)) throw outside(name);
    const { size, isFile } = await statOf(real);
    if (!isFile || size > MAX_BYTES) {
      throw new LatentkitError(
        "file.read-failed",
        `Input file ${describe(name)}: expected a file of at most ${MAX_BYTES} bytes, received ${isFile ? `${size} bytes` : "something else"}.`,
      );
    }
    return await promises.readFile(real);
  } catch (error) {
    throw await readFailed(error, name, path);
  }
}

/** SHA-256 of an input file's bytes, in hex. */
export async function inputFileHash(inputFolder: string, name: string): Promise<string> {
  return createHash("sha256")
    .update(await readInputFile(inputFolder, name))
    .digest("hex");
}

/** The same for the files of one run: a file that has not changed since is read once. */
export function createInputHashes(inputFolder: string): (name: string) => Promise<string> {
  const known = new Map<string, { state: string; hash: string }>();
  return async (name) => {
    const path = resolveInput(inputFolder, name);
    const { size = 0, mtimeMs = 0 } = (await promises.stat(path).catch(() => undefined)) ?? {};
    const state = `${size} ${mtimeMs}`;
    const before = known.get(path);
    if (before?.state === state) return before.hash;
    const hash = await inputFileHash(inputFolder, name);
    known.set(path, { state, hash });
    return hash;
  };
}

function resolveInput(inputFolder: string, name: string): string {
  const plain = name.replace(/ \[input\]$/, "");
  const isForeign =
    isAbsolute(plain) || win32.isAbsolute(plain) || plain.includes("\0") || plain.length > MAX_PATH_CHARACTERS;
  // refused on every system alike: a graph is equally safe everywhere
  if (isForeign || win32.normalize(plain).split(win32.sep)[0] === "..") throw outside(name);
  const root = resolve(inputFolder);
  const path = resolve(root, plain);
  if (path === root || !isInside(root, path)) throw outside(name);
  return path;
}

async function statOf(path: string): Promise<{ size: number; isFile: boolean }> {
  // a pipe or device would never end
  const stat = await promises.stat(path);
  return { size: stat.size, isFile: stat.isFile() };
}

const outside = (name: string): LatentkitError =>
  new LatentkitError(
    "path.outside",
    `Input file: expected the name of a file inside the input folder, received ${describe(name)}.`,
    { received: describe(name) },
  );

async function readFailed(error: unknown, name: string, path: string): Promise<LatentkitError> {
  if (error instanceof LatentkitError) return error;
  const { code } = error as NodeJS.ErrnoException;
  if (code !== "ENOENT" && code !== "ENOTDIR") {
    return new LatentkitError(
      "file.read-failed",
      `Input file ${describe(name)}: cannot read it (${code}).`,
      {},
      { cause: error },
    );
  }
  const neighbours = await promises.readdir(dirname(path)).catch((): string[] => []);
  const suggestion = closest(name.slice(name.lastIndexOf("/") + 1), neighbours);
  const hint = suggestion === undefined ? "" : ` Did you mean ${describe(suggestion)}?`;
  return new LatentkitError(
    "file.not-found",
    `Input file ${describe(name)}: there is no such file in the input folder.${hint}`,
    { received: describe(name), suggestion },
    { cause: error },
  );
}
