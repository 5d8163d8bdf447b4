import { isAbsolute, relative, sep } from "node:path";

/** Limit of a path: no system opens longer ones, and normalising takes time quadratic in the length. */
export const MAX_PATH_CHARACTERS = 4096;

/** Whether an absolute path is the folder or inside it; both are normalised, links resolved by the caller. */
export function isInside(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}
