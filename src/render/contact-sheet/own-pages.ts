import { readdir, rm } from "node:fs/promises";
import { basename, dirname, extname, join } from "node:path";
import { describe, LatentkitError } from "../../base/errors.js";
import { makeEach } from "../../io/files/output-path.js";
import { writeFailed, writeReplacing } from "../../io/files/write-file.js";
import { decodePng, encodePng } from "../../io/png/png.js";
import type { RawImage } from "../../io/png/raw-image.js";
import { readRegular } from "../../io/regular-file.js";

/** Names of a kind of pages in messages, and the key of the PNG text that marks them. */
export interface PageKind {
  readonly name: string;
  readonly short: string;
  readonly mark: string;
}

export const SHEET: PageKind = { name: "Contact sheet", short: "sheet", mark: "latentkit-contact-sheet" };
export const GRID: PageKind = { name: "Grid", short: "grid", mark: "latentkit-grid" };

const MAX_FILE_BYTES = 2 ** 28;

/** Path of a page, from 1: `sheet.png`, `sheet-2.png` … */
function pagePath(path: string, page: number): string {
  if (page === 1) return path;
  const extension = extname(path);
  return join(dirname(path), `${basename(path, extension)}-${page}${extension}`);
}

/** Whether a path is free for a page: it does not exist or is an earlier page of its kind. */
export async function isFree(path: string, kind: PageKind): Promise<boolean> {
  try {
    return await hasMark(path, [kind]);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT";
  }
}

/** Whether a file is a page of a contact sheet or grid. */
export const isOwnPage = (path: string): Promise<boolean> => hasMark(path, [SHEET, GRID]);

/** False for anything but a PNG file. Rejects if the file cannot be read. */
async function hasMark(path: string, kinds: readonly PageKind[]): Promise<boolean> {
  const bytes = await readRegular(path, MAX_FILE_BYTES);
  if (bytes === undefined) return false;
  try {
    const { text } = await decodePng(bytes);
    return kinds.some(({ mark }) => Object.hasOwn(text, mark));
  } catch (error) {
    if (error instanceof LatentkitError) return false;
    throw error;
  }
}

/** Writes a page in one step and returns its path. Fails with file.write-failed, also if another picture has the name. */
export async function writePage(path: string, page: number, picture: RawImage, kind: PageKind): Promise<string> {
  const file = pagePath(path, page);
  const bytes = await encodePng(picture, { text: { [kind.mark]: String(page) } });
  await makeEach(dirname(file)).catch((error: unknown) => {
    throw writeFailed(file, error);
  });
  if (!(await isFree(file, kind))) {
    const message = `${kind.name}: ${describe(file)} is another picture; choose a free name or an earlier ${kind.short}.`;
    throw new LatentkitError("file.write-failed", message);
  }
  await writeReplacing(dirname(file), basename(file), bytes);
  return file;
}

/** Removes the further pages of an earlier, longer sheet or grid of the same name. */
export async function removeLater(path: string, pages: number, kind: PageKind): Promise<void> {
  const extension = extname(path);
  const start = `${basename(path, extension)}-`;
  for (const name of await readdir(dirname(path))) {
    if (!name.startsWith(start) || !name.endsWith(extension)) continue;
    const number = name.slice(start.length, name.length - extension.length);
    if (!/^[1-9]\d{0,8}$/.test(number) || Number(number) <= Math.max(1, pages)) continue;
    const page = join(dirname(path), name);
    if (await isFree(page, kind)) await rm(page, { force: true });
  }
}
