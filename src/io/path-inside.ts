import { isAbsolute, relative, sep } from "node:path";

/** Whether an absolute path is a folder or lies in it; both normalised, links resolved by the caller. */
export function isInside(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}
