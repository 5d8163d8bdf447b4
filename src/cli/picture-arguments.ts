import { stat } from "node:fs/promises";
import { join } from "node:path";
import { LatentkitError } from "../base/errors.js";
import { readRegular } from "../io/regular-file.js";
import { pictureFiles } from "../render/items/picture-files.js";

/** A picture that the command line names, or that lies in a folder that it names. */
export interface PicturePath {
  readonly path: string;
  readonly isInFolder: boolean;
}

/**
 * Pictures in the order of their paths; those of a folder, and of the folders below it, in code-unit order. Throws
 * items.invalid for a folder without any, and as pictureFiles.
 */
export async function* picturePaths(paths: readonly string[]): AsyncGenerator<PicturePath, void, undefined> {
  for (const path of paths) {
    if (!(await isFolder(path))) {
      yield { path, isInFolder: false };
      continue;
    }
    let isEmpty = true;
    for await (const name of pictureFiles({ folder: path, paths: [["**", "*"]] })) {
      isEmpty = false;
      yield { path: join(path, name), isInFolder: true };
    }
    if (isEmpty) throw new LatentkitError("items.invalid", `${path}: no pictures in this folder.`);
  }
}

/** Whether the paths may name several pictures. */
export const namesMany = async (paths: readonly string[]): Promise<boolean> =>
  paths.length > 1 || (await isFolder(paths[0]!));

const isFolder = async (path: string): Promise<boolean> =>
  (await stat(path).catch(() => undefined))?.isDirectory() === true;

const MAX_FILE_BYTES = 2 ** 30;

/** The error of a picture's file, with the file's name in front unless the message has it. */
export function namingFile(error: LatentkitError, path: string): LatentkitError {
  if (error.message.includes(path)) return error;
  return new LatentkitError(error.code, `${path}: ${error.message}`, error.details, { cause: error });
}

/** Reads a picture's file. Fails with file.not-found, file.read-failed or, above 1 GiB, png.too-large. */
export async function readImage(path: string): Promise<Buffer> {
  try {
    const bytes = await readRegular(path, MAX_FILE_BYTES);
    if (bytes !== undefined) return bytes;
    throw new LatentkitError("png.too-large", `${path}: expected a picture of at most 1 GiB.`);
  } catch (error) {
    if (error instanceof LatentkitError) throw error;
    const code = (error as NodeJS.ErrnoException).code;
    const [name, why] =
      code === "ENOENT" ? (["file.not-found", "not found"] as const) : (["file.read-failed", code] as const);
    throw new LatentkitError(name, `Cannot read the image ${path} (${why}).`, {}, { cause: error });
  }
}
