import { readdirSync, readFileSync } from "node:fs";
import { join, posix, relative, sep } from "node:path";

/**
 * A source file, by its path below the folder that was read.
 *
 * @typedef {{ file: string, text: string }} Source
 */

/**
 * One arrow between two files. `names` are those imported, ["*"] for all; an arrow of types alone is gone at run time.
 *
 * @typedef {{ from: string, to: string, isType: boolean, names: string[] }} Arrow
 */

/**
 * Files below a folder whose name matches; none if the folder does not exist.
 *
 * @param {string} folder
 * @param {RegExp} pattern
 * @returns {Source[]}
 */
export function readSources(folder, pattern) {
  /** @type {import("node:fs").Dirent[]} */
  let entries;
  try {
    entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === "ENOENT") return [];
    throw error;
  }
  return entries
    .filter((entry) => entry.isFile() && pattern.test(entry.name))
    .map((entry) => {
      const path = join(entry.parentPath ?? entry.path, entry.name);
      return { file: relative(folder, path).split(sep).join("/"), text: readFileSync(path, "utf8") };
    })
    .sort((a, b) => (a.file < b.file ? -1 : 1));
}

const STATEMENT =
  /^(?:import|export)\s+(type\s)?(?:([^;"'`]*?)\s*from\s*)?"(\.[^"]+)"|\bimport\(\s*"(\.[^"]+)"\s*\)(\.\w+)?/gm;

/**
 * Relative imports and re-exports of a file, dynamic ones too.
 *
 * @param {Source} source
 * @returns {Arrow[]}
 */
export function arrowsOf({ file, text }) {
  return [...text.matchAll(STATEMENT)].map(([, type, clause = "", name, dynamicName]) => {
    const specifiers = /\{([^}]*)\}/.exec(clause)?.[1]?.split(",") ?? [];
    const trimmed = specifiers.map((specifier) => specifier.trim()).filter((specifier) => specifier !== "");
    const isWhole = trimmed.length === 0 || clause.includes("*");
    return {
      from: file,
      to: posix.join(posix.dirname(file), String(name ?? dynamicName)).replace(/\.js$/, ".ts"),
      isType: type !== undefined || (!isWhole && trimmed.every((specifier) => specifier.startsWith("type "))),
      names: isWhole ? ["*"] : trimmed.map((specifier) => specifier.replace(/^type /, "").split(/\s/)[0] ?? ""),
    };
  });
}

/**
 * Circles of imports, each from its first file by name; none for a file that a circle before it holds.
 *
 * @param {readonly Arrow[]} arrows
 * @returns {string[][]}
 */
export function circlesOf(arrows) {
  /** @type {Map<string, Set<string>>} */
  const next = new Map();
  for (const { from, to } of arrows) next.set(from, (next.get(from) ?? new Set()).add(to));
  /** @type {string[][]} */
  const circles = [];
  const inCircle = new Set();
  for (const start of [...next.keys()].sort()) {
    if (inCircle.has(start)) continue;
    const circle = shortestReturn(start, next);
    if (circle === undefined) continue;
    circles.push(circle);
    for (const file of circle) inCircle.add(file);
  }
  return circles;
}

/**
 * @param {string} start
 * @param {Map<string, Set<string>>} next
 * @returns {string[] | undefined}
 */
function shortestReturn(start, next) {
  /** @type {Map<string, string>} */
  const cameFrom = new Map();
  const queue = [start];
  for (const file of queue) {
    for (const to of next.get(file) ?? []) {
      if (to === start) {
        const path = [];
        for (let at = file; at !== start; at = cameFrom.get(at) ?? start) path.unshift(at);
        return [start, ...path];
      }
      if (cameFrom.has(to)) continue;
      cameFrom.set(to, file);
      queue.push(to);
    }
  }
  return undefined;
}
