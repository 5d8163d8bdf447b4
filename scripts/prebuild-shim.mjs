#!/usr/bin/env node
// Stands in for node-gyp: prebuildify calls it with node-gyp's arguments, and it builds with cmake-js.
import { join } from "node:path";
import { BuildError, buildNative } from "./native-build.mjs";
import { PREBUILD_FOLDER } from "./prebuild.mjs";

try {
  buildNative({ folder: join(PREBUILD_FOLDER, "build") });
} catch (error) {
  if (!(error instanceof BuildError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exit(1);
}
