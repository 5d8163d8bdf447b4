#!/usr/bin/env node
// Checks the format of the C++ and CUDA sources against .clang-format; --write formats them.
// Skips where clang-format is not installed, but fails there with CI=true.
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { root } from "./setup.mjs";

const FOLDERS = ["native", "test/native"];

/** C++ and CUDA sources of the project, relative to its root. */
function sources() {
  const files = FOLDERS.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true }).map((file) => join(folder, file)),
  );
  return files.filter((file) => /\.(cpp|h|cu)$/.test(file) && !file.startsWith(join("native", "third_party")));
}

const mode = process.argv.includes("--write") ? ["-i"] : ["--dry-run", "-Werror"];
const { error, status } = spawnSync("clang-format", [...mode, ...sources()], { cwd: root, stdio: "inherit" });
if (error !== undefined) {
  const isRequired = process.env.CI === "true";
  const advice = "install it (Debian and Ubuntu: apt-get install clang-format) and run this again";
  process.stderr.write(
    `clang-format was not found: ${isRequired ? advice : `format not checked; ${advice} to check it`}.\n`,
  );
  process.exitCode = isRequired ? 1 : 0;
} else if (status !== 0) {
  process.stderr.write("The files above are not formatted: run node scripts/check-format.mjs --write.\n");
  process.exitCode = 1;
}
