#!/usr/bin/env node
// npm run release -- --dry-run: makes the tarballs of all platforms that this machine builds for, in build/release with
// their checksums and their bill of materials, and checks them. Without --dry-run it then publishes them, latentkit last.
//   --platforms linux-x64,linux-arm64   those alone
//   --prebuilt                          builds nothing: takes the binaries that lie in prebuilds, of any platform
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { BuildError } from "./native-build.mjs";
import { npm } from "./release/npm.mjs";
import { buildablePlatforms, PLATFORMS, toolchainOf } from "./release/platforms.mjs";
import { orExplain, root, setup } from "./setup.mjs";

const { values } = parseArgs({
  options: { "dry-run": { type: "boolean" }, platforms: { type: "string" }, prebuilt: { type: "boolean" } },
});
orExplain(setup);
// loaded only now: on a fresh clone the set-up installs what they need
const { makeTarballs } = await import("./release/tarballs.mjs");
const { checkInstallation } = await import("./release/installation.mjs");

const folder = join(root, "build/release");
try {
  const platforms = values.platforms?.split(",") ?? (values.prebuilt ? prebuiltPlatforms() : buildablePlatforms());
  for (const name of platforms) {
    if (!Object.hasOwn(PLATFORMS, name))
      throw new BuildError(`--platforms: expected names of ${Object.keys(PLATFORMS).join(", ")}, received "${name}".`);
  }
  // before the first of them is built
  if (!values.prebuilt) for (const name of platforms) toolchainOf(name);
  const tarballs = await makeTarballs({ platforms, folder, isPrebuilt: values.prebuilt });
  for (const platform of platforms) checkInstallation({ folder, tarballs, platform });
  for (const { file, bytes } of tarballs)
    process.stdout.write(`${join(folder, file)}  ${(bytes / 1e6).toFixed(2)} MB\n`);
  if (!values["dry-run"]) {
    for (const { file } of tarballs) npm(["publish", join(folder, file)], root);
  }
} catch (error) {
  if (!(error instanceof BuildError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exit(1);
}

function prebuiltPlatforms() {
  return readdirSync(join(root, "prebuilds"));
}
