#!/usr/bin/env node
// npm's install script. Compiles in a checkout, on request (--build-from-source), and where no prebuild loads.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { BuildError, buildNative } from "./native-build.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const prebuild = join(root, `prebuilds/${process.platform}-${process.arch}/latentkit.node`);

const isCheckout = existsSync(join(root, "src/index.ts"));
const isRequested = ["true", "", root, "latentkit"].includes(String(process.env.npm_config_build_from_source));

if (isCheckout || isRequested || !loads(prebuild)) {
  try {
    buildNative();
  } catch (error) {
    if (!(error instanceof BuildError)) throw error;
    process.stderr.write(`latentkit: ${error.message}\n`);
    process.exit(1);
  }
}

/** Whether a child process loads the file: a binary for another machine can end the process that tries. */
function loads(file) {
  if (!existsSync(file)) return false;
  return spawnSync(process.execPath, ["-e", "require(process.argv[1])", file], { stdio: "ignore" }).status === 0;
}
