import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";

/** Folder of what every run of this user may use again: LATENTKIT_CACHE_DIR, else `latentkit` in the user's caches. */
export function cacheFolder(): string {
  const { LATENTKIT_CACHE_DIR, XDG_CACHE_HOME } = process.env;
  if (LATENTKIT_CACHE_DIR) return LATENTKIT_CACHE_DIR;
  // a relative path counts as absent, as the specification has it
  const caches = XDG_CACHE_HOME && isAbsolute(XDG_CACHE_HOME) ? XDG_CACHE_HOME : join(homedir(), ".cache");
  return join(caches, "latentkit");
}
