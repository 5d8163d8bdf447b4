import { readdir, readFile, rm, stat } from "node:fs/promises";
import { basename, dirname, extname, join } from "node:path";
import { LatentkitError } from "../../base/errors.js";
import { decodePng } from "../../io/png/png.js";

/** Key of the PNG text that marks a page of a contact sheet. */
export const PAGE_KEY = "latentkit-contact-sheet";

const MAX_FILE_BYTES = 2 ** 28;

/** Path of a sheet's page, from 1: `sheet.png`, `sheet-2.png` … */
export function pagePath(path: string, page: number): string {
  if (page === 1) return path;
  const extension = extname(path);
  return join(dirname(path), `${basename(path, extension)}-${page}${extension}`);
}

/** Whether a path is free for a page: nothing is there, or the page of an earlier sheet. */
export async function isFree(path: string): Promise<boolean> {
  try {
    const { size } = await stat(path);
    return size <= MAX_FILE_BYTES && Object.hasOwn((await decodePng(await readFile(path))).text, PAGE_KEY);
  } catch (error) {
    if (error instanceof LatentkitError) return false;
    return (error as NodeJS.ErrnoException).code === "ENOENT";
  }
}

/** Takes away the pages that an earlier, longer sheet of the same name had beyond these. */
export async function removeLater(path: string, pages: number): Promise<void> {
  const extension = extname(path);
  const start = `${basename(path, extension)}-`;
  for (const name of await readdir(dirname(path))) {
    if (!name.startsWith(start) || !name.endsWith(extension)) continue;
    const number = name.slice(start.length, name.length - extension.length);
    if (!/^[1-9]\d{0,8}$/.test(number) || Number(number) <= Math.max(1, pages)) continue;
    const page = join(dirname(path), name);
    if (await isFree(page)) await rm(page, { force: true });
  }
}
