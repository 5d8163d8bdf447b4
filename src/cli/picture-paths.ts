import { stat } from "node:fs/promises";
import { join } from "node:path";
import { LatentkitError } from "../base/errors.js";
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
    if (isEmpty) throw new LatentkitError("items.invalid", `${path}: expected a folder of pictures, received none.`);
  }
}

/** Whether the paths may name several pictures. */
export const namesMany = async (paths: readonly string[]): Promise<boolean> =>
  paths.length > 1 || (await isFolder(paths[0]!));

const isFolder = async (path: string): Promise<boolean> =>
  (await stat(path).catch(() => undefined))?.isDirectory() === true;
