// The tarballs of a release: made, checked and listed with their checksums.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { bindings } from "../bindings-gyp.mjs";
import { prebuild } from "../prebuild.mjs";
import { root } from "../setup.mjs";
import { billOfMaterials } from "./bill-of-materials.mjs";
import { checkBinary } from "./binaries.mjs";
import { INLINED } from "./bundle.mjs";
import { npm } from "./npm.mjs";
import {
  emptyFolder,
  MAIN_FILES,
  manifestOf,
  platformFiles,
  writeMainPackage,
  writePlatformPackages,
} from "./packages.mjs";

const BILL = "latentkit.cdx.json";
const MAX_PLATFORM_BYTES = 2.5e6;

/**
 * Builds the platforms, packs them and latentkit, and checks each tarball. Needs compiled TypeScript. Returns the
 * tarballs in the order in which they are published: latentkit comes last, when all that it names is there.
 * @param {{ platforms: readonly string[], folder: string, isPrebuilt?: boolean }} options folder: emptied first;
 *   isPrebuilt: the binaries lie in prebuilds
 * @returns {Promise<{ name: string, file: string, bytes: number }[]>}
 */
export async function makeTarballs({ platforms, folder, isPrebuilt = false }) {
  emptyFolder(folder);
  const stage = emptyFolder(join(root, "build/release-stage"));
  const packages = [];
  for (const platform of platforms) {
    const binaries = isPrebuilt ? join(root, "prebuilds", platform) : await prebuild(platform);
    for (const name of readdirSync(binaries)) checkBinary(platform, join(binaries, name));
    packages.push(...writePlatformPackages({ root, platform, binaries, folder: stage }));
  }
  const names = packages.map((path) => manifestOf(path).name);
  const main = await writeMainPackage({ root, folder: stage, packages: names });
  if (process.platform === "linux") writeFileSync(join(main, "bindings.gyp"), bindings());
  const tarballs = [];
  for (const path of [...packages, main]) {
    await lint(path);
    tarballs.push(pack(path, folder));
  }
  writeFileSync(join(folder, BILL), `${JSON.stringify(billOfMaterials(root, names), null, 2)}\n`);
  const files = [...tarballs.map(({ file }) => file), BILL];
  const sums = files.map((file) => `${sha256(join(folder, file))}  ${file}\n`);
  writeFileSync(join(folder, "SHA256SUMS"), sums.join(""));
  return tarballs;
}

/** Throws where publint finds an error or a warning in a package's folder. */
async function lint(path) {
  const { messages, pkg } = await publint({ pkgDir: path, level: "warning", strict: true, pack: false });
  const texts = messages.map((message) => formatMessage(message, pkg));
  assert.deepEqual(texts, [], `publint of ${pkg.name}`);
}

function pack(path, folder) {
  const [{ name, filename, size, files }] = JSON.parse(npm(["pack", "--json", "--pack-destination", folder], path));
  checkPackage(
    manifestOf(path),
    files.map((file) => file.path),
    size,
  );
  assert.equal(statSync(join(folder, filename)).size, size);
  return { name, file: filename, bytes: size };
}

/**
 * Throws where a package lacks a file, carries one that does not belong to it, is too large, or has an install script.
 * @param {Record<string, any>} manifest
 * @param {readonly string[]} paths
 * @param {number} bytes of its tarball
 */
export function checkPackage(manifest, paths, bytes) {
  const { name } = manifest;
  for (const script of ["preinstall", "install", "postinstall"])
    assert.equal(manifest.scripts?.[script], undefined, `${name} has a script ${script}`);
  assert.notEqual(manifest.private, true, `${name} is private`);
  if (name === "latentkit") {
    const types = Object.values(manifest.exports).flatMap((entry) => (entry.types ? [entry.types.slice(2)] : []));
    for (const path of [...MAIN_FILES, ...types]) assert.ok(paths.includes(path), `${path} is missing from ${name}`);
    const stray = paths.filter((path) => /^(src|test|build|prebuilds|bench|\.ci)\/|\.node$/.test(path));
    const packed = INLINED.map((inlined) => `node_modules/${inlined}/`);
    stray.push(
      ...paths.filter((path) => /^node_modules\//.test(path) && !packed.some((start) => path.startsWith(start))),
    );
    assert.deepEqual(stray, [], `these files do not belong into ${name}`);
    return;
  }
  const isCuda = name.endsWith("-cuda");
  const binary = isCuda ? "latentkit_cuda.so" : "latentkit.node";
  const platform = name.replace(/^@latentkit\/|-cuda$/g, "");
  assert.deepEqual([...paths].sort(), [...platformFiles(platform), binary].sort(), `files of ${name}`);
  assert.ok(bytes < MAX_PLATFORM_BYTES, `${name}: expected less than ${MAX_PLATFORM_BYTES} bytes, received ${bytes}`);
  for (const key of ["os", "cpu"]) assert.equal(manifest[key]?.length, 1, `${name} does not say its ${key}`);
}

function sha256(file) {
  return createHash("sha256").update(readFileSync(file)).digest("hex");
}
