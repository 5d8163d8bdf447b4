import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { LatentkitError } from "./errors.js";

const NAME = "latentkit";

const { folder, version } = locate();

/** Folder of the package. */
export const packageRoot = folder;
export const packageVersion = (): string => version;

/** Throws native.unavailable in a bundle, which has no folder and no version. */
function locate(): { folder: string; version: string } {
  try {
    // from dist/base
    const folder = fileURLToPath(new URL("../..", import.meta.url));
    const { name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    if (name === NAME) return { folder, version };
  } catch {
    // a bundle lies elsewhere, and one of CommonJS has no import.meta.url
  }
  throw new LatentkitError(
    "native.unavailable",
    `${NAME} cannot be bundled, because it loads a native module and worker threads from its own folder: mark it ` +
      `external (esbuild: --external:${NAME}; Vite: ssr.external; webpack and Rollup: external).`,
  );
}
