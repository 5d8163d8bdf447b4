#!/usr/bin/env node
// Stands in for node-gyp: prebuildify calls it with node-gyp's arguments, and it builds with cmake-js.
import { join } from "node:path";
import { BuildError, buildNative } from "./native-build.mjs";
import { prebuildFolder } from "./prebuild.mjs";
import { ownPlatform, toolchainOf } from "./release/platforms.mjs";

try {
  const platform = `${process.env.PREBUILD_PLATFORM}-${process.env.PREBUILD_ARCH}`;
  // for every GPU, or without any if there is no CUDA compiler; LATENTKIT_REQUIRE_CUDA=1 makes that an error
  const ownCuda = process.env.LATENTKIT_REQUIRE_CUDA === "1" ? "ON" : "AUTO";
  const cuda = platform === ownPlatform() ? ownCuda : "OFF";
  const folder = join(prebuildFolder(platform), "build");
  buildNative({ folder, cuda, architectures: "", toolchain: toolchainOf(platform) });
} catch (error) {
  if (!(error instanceof BuildError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exit(1);
}
