import { promises, realpathSync, statSync } from "node:fs";
import { basename, dirname, isAbsolute, normalize, relative, resolve, sep, win32 } from "node:path";
import { withoutFormat } from "../../base/controls.js";
import { describe, LatentkitError } from "../../base/errors.js";
import type { EXTENSIONS, PictureType } from "../pictures/format.js";
import { isInside, MAX_PATH_CHARACTERS } from "../regular-file.js";
import { writeFailed } from "./write-file.js";

/** Target of a prefix inside the output folder. */
export interface OutputTarget {
  /** Absolute path of the folder. */
  readonly folder: string;
  /** Path of the folder relative to the output folder, with "/"; "" for the output folder itself. */
  readonly subfolder: string;
  /** First part of the file names. */
  readonly name: string;
}

/**
 * Replaces %width% and %height% and, in local time and with two digits, %year% %month% %day% %hour% %minute% %second%
 * (the year with four). Other %…% stay as they are.
 */
export function expandPrefix(prefix: string, size: { width: number; height: number }, now: Date): string {
  const two = (value: number) => String(value).padStart(2, "0");
  const values: Readonly<Record<SavingName, string>> = {
    width: String(size.width),
    height: String(size.height),
    year: String(now.getFullYear()),
    month: two(now.getMonth() + 1),
    day: two(now.getDate()),
    hour: two(now.getHours()),
    minute: two(now.getMinutes()),
    second: two(now.getSeconds()),
  };
  return prefix.replace(/%(width|height|year|month|day|hour|minute|second)%/g, (_, name: SavingName) => values[name]);
}

/**
 * Resolves a prefix such as "folder/name" inside the output folder; `input` names its input in messages. Nothing is
 * touched. Fails with path.outside if it would leave the folder on any system, or has characters that file names cannot have.
 */
export function resolvePrefix(outputFolder: string, prefix: string, input?: string): OutputTarget {
  refuse(pathFault(prefix), prefix, input);
  const normal = normalize(withoutFormat(prefix));
  return targetOf(outputFolder, prefix, dirname(normal), basename(normal), input);
}

/**
 * Resolves a folder path inside the output folder and a plain file name in it; `inputs` name their inputs in messages.
 * Nothing is touched. Fails with path.outside.
 */
export function resolveFile(
  outputFolder: string,
  folder: string,
  name: string,
  inputs: { folder?: string; name?: string } = {},
): OutputTarget {
  refuse(pathFault(folder), folder, inputs.folder);
  refuse(nameFault(name), name, inputs.name);
  const subfolder = normalize(withSlashes(withoutFormat(folder)));
  return targetOf(outputFolder, folder, subfolder, withoutFormat(name), inputs.folder);
}

/** A path with the separator of every system. */
export const withSlashes = (path: string): string => path.replaceAll("\\", "/");

function targetOf(outputFolder: string, path: string, subfolder: string, name: string, input?: string): OutputTarget {
  const root = resolve(outputFolder);
  const folder = resolve(root, subfolder);
  if (!isInside(root, folder)) throw outside(path, INSIDE, input);
  return { folder, subfolder: relative(root, folder).split(sep).join("/"), name };
}

const INSIDE = "a path inside the output folder";

/** Characters that would break a line-based list of files or control a terminal. */
const CONTROLS = /[\p{Cc}\p{Zl}\p{Zp}]/u;

/**
 * Expectation that a path for writing does not meet, because it has control characters or an `escapeFault`, also without its format
 * characters, which file names do not keep; undefined for a good path.
 */
export const pathFault = (path: string): string | undefined =>
  escapeFault(path) ??
  escapeFault(withoutFormat(path)) ??
  (CONTROLS.test(path) ? "a path without line breaks and other control characters" : undefined);

/**
 * Expectation that a path does not meet because it leaves its folder on this or any other system, so that a graph is equally safe
 * everywhere; undefined for a good path.
 */
export function escapeFault(path: string): string | undefined {
  if (path.length > MAX_PATH_CHARACTERS) return `a path of at most ${MAX_PATH_CHARACTERS} characters`;
  if (path.includes("\0")) return "a path without NUL characters";
  if (/\p{Surrogate}/u.test(path)) return "a path without lone surrogates";
  if (isAbsolute(path) || win32.isAbsolute(path) || (sep === "\\" && path.includes(":"))) {
    return "a path relative to the output folder";
  }
  const leaves = [normalize(path), win32.normalize(path)].some((normal) => /^\.\.(?:[\\/]|$)/.test(normal));
  return leaves ? INSIDE : undefined;
}

/** Expectation that a plain file name does not meet; undefined for a good name. */
export const nameFault = (name: string): string | undefined =>
  pathFault(name) ??
  (basename(name) === name && !/^\.{1,2}$/.test(withoutFormat(name)) ? undefined : "a file name without folders");

/** Throws path.outside for a path with a fault, what was expected of it. */
export function refuse(fault: string | undefined, path: string, input?: string): void {
  if (fault !== undefined) throw outside(path, fault, input);
}

function outside(path: string, expected: string, input?: string): LatentkitError {
  const received = describe(path);
  const subject = input === undefined ? "Output path" : `input "${input}"`;
  return new LatentkitError("path.outside", `${subject}: expected ${expected}, received ${received}.`, {
    input,
    expected,
    received,
  });
}

/**
 * Creates the folder of a target, and the output folder, if they are missing. Fails with path.outside, before anything is
 * created, if a symbolic link on the path leads out of the output folder, and with file.write-failed.
 */
export async function makeFolder(outputFolder: string, target: OutputTarget): Promise<void> {
  const root = resolve(outputFolder);
  try {
    if (exists(root, target.folder)) return;
    await makeEach(root);
    const realRoot = await promises.realpath(root);
    await refuseLeavingLink(realRoot, root, target);
    await makeEach(target.folder);
  } catch (error) {
    throw writeFailed(target.subfolder === "" ? basename(root) : target.subfolder, error);
  }
}

/**
 * Whether the folder exists, and is inside the output folder on the disk too, as for all images but the first.
 * Synchronous: the calls cost less than three turns to Node's thread pool.
 */
function exists(root: string, folder: string): boolean {
  try {
    const realRoot = realpathSync.native(root);
    const real = folder === root ? realRoot : realpathSync.native(folder);
    return isInside(realRoot, real) && statSync(real).isDirectory();
  } catch {
    // any error is reported when it is created
    return false;
  }
}

/** Creates a folder and its parents: Node's recursive mkdir never ends if the system fails with ENOENT, as in /proc. */
export async function makeEach(folder: string): Promise<void> {
  const make = () =>
    promises.mkdir(folder).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
      if (!(await promises.stat(folder)).isDirectory()) throw Object.assign(error, { code: "ENOTDIR" });
    });
  try {
    await make();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT" || dirname(folder) === folder) throw error;
    await makeEach(dirname(folder));
    await make();
  }
}

/** Resolves the part of the path that exists already: folders created below it are not links. */
async function refuseLeavingLink(realRoot: string, root: string, target: OutputTarget): Promise<void> {
  for (let path = target.folder; path !== root; path = dirname(path)) {
    const real = await realPathOf(path);
    if (real === undefined) continue;
    if (isInside(realRoot, real)) return;
    throw outside(target.subfolder, "a path without symbolic links that leave the output folder");
  }
}

async function realPathOf(path: string): Promise<string | undefined> {
  try {
    return await promises.realpath(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  // mkdir would follow a dangling link
  const entry = await promises.lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  return entry?.isSymbolicLink() ? resolve(dirname(path), await promises.readlink(path)) : undefined;
}

/** End of a numbered name of a picture: extension, with what ComfyUI's SaveImage writes before it. */
export type PictureEnding = `${"" | "_"}${(typeof EXTENSIONS)[PictureType]}`;

/** End of a numbered name. */
export type Ending = PictureEnding | "_.latent";

const WITH_LINE = /^([0-9]+)_(?:.{4}|\.webp|\.avif)$/su;
const WITHOUT_LINE = /^([0-9]+)(?:.{4}|\.webp|\.avif)$/su;

/**
 * One more than the highest counter among the folder's entries, or 1: of `<name>_<digits>`, with "_" if the ending has it,
 * and an extension: any of four characters or a picture's. Gaps are not filled.
 */
export async function nextCounter(folder: string, name: string, ending: Ending): Promise<bigint> {
  const start = `${name}_`;
  const ofPictures = ending.startsWith("_") ? WITH_LINE : WITHOUT_LINE;
  const counted = ending === "_.latent" ? /^([0-9]+)_\.latent$/ : ofPictures;
  let highest = 0n;
  for (const entry of await entriesOf(folder)) {
    if (!entry.startsWith(start)) continue;
    const digits = counted.exec(entry.slice(start.length))?.[1];
    if (digits === undefined) continue;
    const counter = BigInt(digits);
    if (counter > highest) highest = counter;
  }
  return highest + 1n;
}

/** Makes `<name>_<counter>`, with at least five digits. */
export const counterName = (name: string, counter: bigint): string => `${name}_${String(counter).padStart(5, "0")}`;

async function entriesOf(folder: string): Promise<string[]> {
  try {
    return await promises.readdir(folder);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return [];
    if (code === "ENOTDIR") throw writeFailed(basename(folder), error);
    const message = `Cannot list the output folder ${describe(basename(folder))} (${code}).`;
    throw new LatentkitError("file.read-failed", message, {}, { cause: error });
  }
}

/** Names in a prefix that a node fills when it saves. */
const SAVING_NAMES = ["width", "height", "year", "month", "day", "hour", "minute", "second"] as const;
const DATE_START = "date:";
type SavingName = (typeof SAVING_NAMES)[number];
const AT_SAVING: ReadonlySet<string> = new Set(SAVING_NAMES);
/** Letters of a date's parts, which stand alone or doubled. */
const DATE_PARTS: Readonly<Record<string, (date: Date) => number>> = {
  d: (date) => date.getDate(),
  M: (date) => date.getMonth() + 1,
  h: (date) => date.getHours(),
  m: (date) => date.getMinutes(),
  s: (date) => date.getSeconds(),
};

/**
 * Replaces names between percent signs, as ComfyUI's editor does. A name for which `replace` returns nothing stays, and
 * its second sign may begin another.
 */
export function fillTexts(text: string, replace: (name: string) => string | undefined): string {
  let filled = "";
  for (let at = 0; at < text.length; ) {
    const start = text.indexOf("%", at);
    const end = start < 0 ? -1 : text.indexOf("%", start + 1);
    if (end < 0) return filled + text.slice(at);
    filled += text.slice(at, start);
    const name = text.slice(start + 1, end);
    const value = name === "" ? undefined : (replace(name) ?? (AT_SAVING.has(name) ? `%${name}%` : undefined));
    at = value === undefined ? end : end + 1;
    filled += value ?? text.slice(start, end);
  }
  return filled;
}

/** Local time for date:yyyy-MM-dd: d, M, h, m, s (doubled: with a leading zero), yy and yyyy; else undefined. */
export function dateOf(name: string, now: Date): string | undefined {
  if (!name.startsWith(DATE_START)) return undefined;
  const format = name.slice(DATE_START.length);
  const year = String(now.getFullYear());
  let text = "";
  for (let at = 0; at < format.length; ) {
    const letter = format[at]!;
    const longest = letter === "y" ? 4 : letter in DATE_PARTS ? 2 : 1;
    let length = 1;
    while (length < longest && format[at + length] === letter) length++;
    if (letter in DATE_PARTS) text += String(DATE_PARTS[letter]!(now)).padStart(length, "0");
    else if (letter === "y" && length % 2 === 0) text += year.slice(-length);
    else text += letter.repeat(length);
    at += length;
  }
  return text;
}

/** Names that are meant as a date, or as a node and its widget. */
const MEANT_AS_TEXT = /^(?:date(?:\s*:.*)?|[^./\\]+(?:\.[^./\\]+)*\.[a-z_]\w*)$/i;

/** Texts of a prefix that look like a date or %Node.widget% but are neither, and would stay in the files' names. */
export function openTexts(prefix: string): Set<string> {
  const found = new Set<string>();
  fillTexts(prefix, (name) => {
    if (name.startsWith(DATE_START)) return "";
    if (MEANT_AS_TEXT.test(name.trim())) found.add(`%${name}%`);
    return undefined;
  });
  return found;
}
