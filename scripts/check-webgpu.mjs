#!/usr/bin/env node
// Runs networks and whole renders on WebGPU beside the CPU, on Mesa's llvmpipe: Vulkan on the processor, with float16.
// Needs Linux, cc, compiled tests (npm test makes them) and Debian's packages mesa-vulkan-drivers, libvulkan1 and
// libvulkan-dev.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "./setup.mjs";

const DRIVERS = "/usr/share/vulkan/icd.d";
const HEADER = "/usr/include/vulkan/vk_icd.h";
const SUITES = ["networks-on-webgpu", "renders-on-webgpu"].map((name) => `build/test/${name}.test.js`);

const description = existsSync(DRIVERS) ? readdirSync(DRIVERS).find((name) => name.startsWith("lvp_icd.")) : undefined;
if (description === undefined || !existsSync(HEADER)) {
  process.stderr.write(
    "WebGPU is not checked, since llvmpipe or Vulkan's headers are missing: install them (Debian and Ubuntu: " +
      "apt-get install mesa-vulkan-drivers libvulkan1 libvulkan-dev) and run this again.\n",
  );
  process.exit(1);
}

const folder = mkdtempSync(join(tmpdir(), "latentkit-webgpu-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const mocha = [join(root, "node_modules/mocha/bin/mocha.js"), ...SUITES];
const env = {
  ...process.env,
  LATENTKIT_TEST_VULKAN: driver(JSON.parse(readFileSync(join(DRIVERS, description), "utf8"))),
};
process.exit(spawnSync(process.execPath, mocha, { cwd: root, stdio: "inherit", env }).status ?? 1);

/**
 * Builds the driver in front of llvmpipe, and returns the path of its description.
 *
 * @param {{ ICD: { library_path: string } }} llvmpipe
 */
function driver({ ICD }) {
  const library = join(folder, "libllvmpipe.so");
  const flags = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-fvisibility=hidden"];
  const source = join(root, "scripts/webgpu/llvmpipe.c");
  execFileSync("cc", [...flags, `-DDRIVER="${ICD.library_path}"`, source, "-o", library, "-ldl"], { stdio: "inherit" });
  const path = join(folder, "llvmpipe.json");
  const entry = { library_path: library, api_version: "1.1.0" };
  writeFileSync(path, JSON.stringify({ file_format_version: "1.0.0", ICD: entry }));
  return path;
}
