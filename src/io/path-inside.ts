import { isAbsolute, relative, sep } from "node:path";

/** No system opens longer paths, and to normalise one takes time that grows with the square of its length. */
export const MAX_PATH_CHARACTERS = 4096;

/** Whether an absolute path is a folder or lies in it; both normalised, links resolved by the caller. */
export function isInside(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}
