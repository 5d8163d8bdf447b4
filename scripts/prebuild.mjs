#!/usr/bin/env node
// Builds prebuilds/PLATFORM/latentkit.node, the binary that a platform's package carries.
//   node scripts/prebuild.mjs [PLATFORM …]   this machine's own if none is named; linux-arm64 with a cross compiler
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import prebuildify from "prebuildify";
import { ownPlatform, toolchainOf } from "./release/platforms.mjs";
import { root } from "./setup.mjs";

/** Where the shim builds; prebuildify moves the module away, so never the folder that a checkout loads from. */
export const prebuildFolder = (platform) => join(root, "build/prebuild", platform);

/** Builds for one platform; returns the folder of its binaries. */
export async function prebuild(name = ownPlatform()) {
  toolchainOf(name);
  const cwd = prebuildFolder(name);
  const output = join(root, "prebuilds", name);
  mkdirSync(cwd, { recursive: true });
  // a CUDA library of an earlier build would be packed
  rmSync(output, { recursive: true, force: true });
  const nodeGyp = fileURLToPath(new URL("prebuild-shim.mjs", import.meta.url));
  const [platform, arch] = name.split("-");
  const options = { name: "latentkit", napi: true, cwd, out: root, nodeGyp, platform, arch };
  /** @type {Promise<void>} */
  const built = new Promise((resolve, reject) => {
    prebuildify(options, (error) => (error ? reject(error) : resolve()));
  });
  await built;
  return output;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const names = process.argv.slice(2);
  for (const name of names.length === 0 ? [ownPlatform()] : names) await prebuild(name);
}
