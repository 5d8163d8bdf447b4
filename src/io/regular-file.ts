import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { isAbsolute, relative, sep } from "node:path";

/** O_NONBLOCK, which Windows lacks: opening a pipe does not wait for its writer, nor a device for its other end. */
export const READ_FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

// Standard input from a pipe is refused too: it may never end, and no command documents it.
/**
 * Opens a file named by a user, for reading. Rejects with the system's errors, EISDIR for a folder, and for a pipe or a
 * device, which may never end, with an error whose `code` says so.
 */
export async function openRegular(path: string): Promise<FileHandle> {
  const handle = await open(path, READ_FLAGS);
  try {
    requireFile(await handle.stat());
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** As openRegular, for a descriptor. */
export function openRegularSync(path: string): number {
  const descriptor = openSync(path, READ_FLAGS);
  try {
    requireFile(fstatSync(descriptor));
    return descriptor;
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
}

/** Bytes of a file that openRegular opens; undefined for more than `most`. */
export async function readRegular(path: string, most: number): Promise<Buffer | undefined> {
  const handle = await openRegular(path);
  try {
    return (await handle.stat()).size > most ? undefined : await handle.readFile();
  } finally {
    await handle.close();
  }
}

export function readRegularSync(path: string, most: number): Buffer | undefined {
  const descriptor = openRegularSync(path);
  try {
    return fstatSync(descriptor).size > most ? undefined : readFileSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

const MAX_TEXT_BYTES = 2 ** 20;

/** Text of a file of at most 1 MiB; undefined for a longer one, and for anything but a file. Throws the system's errors. */
export function readBoundedText(path: string): string | undefined {
  const descriptor = openSync(path, READ_FLAGS);
  try {
    const stats = fstatSync(descriptor);
    return stats.isFile() && stats.size <= MAX_TEXT_BYTES ? readFileSync(descriptor, "utf8") : undefined;
  } finally {
    closeSync(descriptor);
  }
}

function requireFile(stats: Stats): void {
  if (stats.isFile()) return;
  const code = stats.isDirectory() ? "EISDIR" : stats.isFIFO() ? "a pipe" : "a device";
  throw Object.assign(new Error(`expected a file, received ${code}`), { code });
}

/**
 * Text of a file's bytes, without its byte-order mark: UTF-16 if a mark, or a NUL beside the first character, says so,
 * else UTF-8. Undefined for bytes that are not valid in that encoding.
 */
export function decodeText(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder(encodingOf(bytes), { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** Encoding of a text by its first two bytes: UTF-16 by a mark or the NUL of a letter, else UTF-8. */
export function encodingOf([first, second]: Uint8Array): "utf-8" | "utf-16le" | "utf-16be" {
  if ((first === 0xff && second === 0xfe) || (first !== 0 && second === 0)) return "utf-16le";
  if ((first === 0xfe && second === 0xff) || (first === 0 && second !== 0)) return "utf-16be";
  return "utf-8";
}

/** Limit of a path: no system opens longer ones, and normalising takes time quadratic in the length. */
export const MAX_PATH_CHARACTERS = 4096;

/** Whether an absolute path is the folder or inside it; both are normalised, links resolved by the caller. */
export function isInside(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}
