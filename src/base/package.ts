import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { LatentkitError } from "./errors.js";

const NAME = "latentkit";

/** Folder of the package and its version. Throws native.unavailable in a bundle, which has neither. */
export const { packageRoot, version } = locate();

/** Version of the package. */
export const packageVersion = (): string => version;

function locate(): { packageRoot: string; version: string } {
  try {
    // from dist/base
    const packageRoot = fileURLToPath(new URL("../..", import.meta.url));
    const { name, version } = JSON.parse(readFileSync(join(packageRoot, "package.json"), "utf8"));
    if (name === NAME) return { packageRoot, version };
  } catch {
    // a bundle lies elsewhere, and one of CommonJS has no import.meta.url
  }
  throw new LatentkitError(
    "native.unavailable",
    `${NAME} cannot be bundled, because it loads a native module and worker threads from its own folder: mark it ` +
      `external (esbuild: --external:${NAME}; Vite: ssr.external; webpack and Rollup: external).`,
  );
}
