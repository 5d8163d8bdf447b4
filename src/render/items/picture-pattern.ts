import { LatentkitError } from "../../base/errors.js";

/** Endings of files that count as pictures, whatever this installation can decode. */
const PICTURE_ENDINGS: ReadonlySet<string> = new Set([
  ...[".png", ".jpg", ".jpeg", ".webp", ".avif", ".gif", ".tif", ".tiff"],
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
 * Reads a path with the wildcards "*", "?", "{a,b}" and, as a whole name, "**". The folder is what stands before the
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
