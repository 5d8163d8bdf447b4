#!/usr/bin/env node
// Builds prebuilds/PLATFORM-ARCH/latentkit.node, the binary that the package carries for this machine.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import prebuildify from "prebuildify";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Where the shim builds; prebuildify moves the module away, so never the folder that a checkout loads from. */
export const PREBUILD_FOLDER = join(root, "build/prebuild");

export function prebuild() {
  mkdirSync(PREBUILD_FOLDER, { recursive: true });
  const nodeGyp = fileURLToPath(new URL("prebuild-shim.mjs", import.meta.url));
  const options = { name: "latentkit", napi: true, cwd: PREBUILD_FOLDER, out: root, nodeGyp };
  /** @type {Promise<void>} */
  const built = new Promise((resolve, reject) => {
    prebuildify(options, (error) => (error ? reject(error) : resolve()));
  });
  return built;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await prebuild();
