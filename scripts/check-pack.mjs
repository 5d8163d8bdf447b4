#!/usr/bin/env node
// Makes this machine's tarballs of a release, installs them in an empty project without scripts, compiler or CMake, and
// renders there. npm run release does so for every platform.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ownPlatform } from "./release/platforms.mjs";
import { orExplain, setup } from "./setup.mjs";

orExplain(setup);
const { makeTarballs } = await import("./release/tarballs.mjs");
const { checkInstallation } = await import("./release/installation.mjs");

const folder = mkdtempSync(join(tmpdir(), "latentkit-tarballs-"));
try {
  const platform = ownPlatform();
  const tarballs = await makeTarballs({ platforms: [platform], folder });
  checkInstallation({ folder, tarballs, platform });
} finally {
  rmSync(folder, { recursive: true, force: true });
}
