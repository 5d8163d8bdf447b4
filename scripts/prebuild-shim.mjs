#!/usr/bin/env node
// Stands in for node-gyp: prebuildify calls it with node-gyp's arguments, and it builds with cmake-js.
import { join } from "node:path";
import { BuildError, buildNative } from "./native-build.mjs";
import { PREBUILD_FOLDER } from "./prebuild.mjs";

try {
  // for every GPU, or without any where there is no CUDA compiler; LATENTKIT_REQUIRE_CUDA=1 makes that an error
  const cuda = process.env.LATENTKIT_REQUIRE_CUDA === "1" ? "ON" : "AUTO";
  buildNative({ folder: join(PREBUILD_FOLDER, "build"), cuda, architectures: "" });
} catch (error) {
  if (!(error instanceof BuildError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exit(1);
}
