// The packages of a release: a folder for each, as it is packed.
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { coreTexts, packedText, THIRD_PARTY } from "./bill-of-materials.mjs";
import { bundle, INLINED, writeInlined } from "./bundle.mjs";
import { npm } from "./npm.mjs";
import { PLATFORMS } from "./platforms.mjs";

/** Files of a platform's package beside its binary. */
export const platformFiles = (platform) => [
  "LICENSE",
  "NOTICE",
  "README.md",
  "package.json",
  ...Object.keys(coreTexts(platform)),
];
/** Files without which latentkit's own package does not work. */
export const MAIN_FILES = [
  "dist/index.js",
  "dist/index.d.ts",
  "dist/testing.js",
  "dist/service/web/page/index.html",
  "dist/testing.d.ts",
  "dist/cli/main.js",
  "dist/cli/commands/init.js",
  "dist/host/checkpoint/host.js",
  "dist/host/checkpoint/listing-host.js",
  "dist/host/checkpoint/runtime/child.js",
  "dist/host/checkpoint/runtime/remote/thread.js",
  "dist/native/cuda/trial.js",
  "dist/render/threads/thread.js",
  "dist/host/checkpoint/tokenizer/clip-vocab/merges.txt.gz",
  "dist/host/checkpoint/tokenizer/qwen-vocab/merges.txt.gz",
  ...["pieces.txt", "scores.f32", "characters.bin"].map((name) => `dist/host/checkpoint/tokenizer/t5-vocab/${name}.br`),
  "bin/latentkit.mjs",
  "examples/first-light.json",
  "examples/items.csv",
  "CMakeLists.txt",
  "bindings.gyp",
  "native/include/engine.h",
  "native/include/engine_cuda.h",
  "native/shared/normals.h",
  "native/cuda/kernels/kernels.cu",
  "native/cuda/exports.map",
  "scripts/native-build.mjs",
  "LICENSE",
  "NOTICE",
  "README.md",
  ...THIRD_PARTY.map(packedText),
  ...INLINED.flatMap((name) => ["index.cjs", "package.json", "LICENSE"].map((file) => `node_modules/${name}/${file}`)),
];
const PUBLISHING = { access: "public", provenance: true };
const CUDA_LIBRARY = "latentkit_cuda.so";

/**
 * Writes the packages of one platform: its native core, and its CUDA library if that was built. Returns their folders.
 * @param {{ root: string, platform: string, binaries: string, folder: string }} options binaries: folder of the prebuild
 */
export function writePlatformPackages({ root, platform, binaries, folder }) {
  const core = { name: platform, file: "latentkit.node", what: "Native core" };
  const cuda = { name: `${platform}-cuda`, file: CUDA_LIBRARY, what: "CUDA library" };
  const parts = existsSync(join(binaries, CUDA_LIBRARY)) ? [core, cuda] : [core];
  return parts.map(({ name, file, what }) => {
    const own = join(folder, name);
    for (const path of ["LICENSE", "NOTICE"]) copy(join(root, path), join(own, path));
    for (const [path, text] of Object.entries(coreTexts(platform))) copy(resolve(root, text), join(own, path));
    copy(join(binaries, file), join(own, file));
    const { version, author, license, engines } = manifestOf(root);
    const description = `${what} of latentkit for ${platform}.`;
    // preferUnplugged: Yarn must unzip what the system loads
    const rest = { license, engines, preferUnplugged: true };
    const dependencies = name === cuda.name ? driverAccess(root, platform) : undefined;
    const machine = Object.fromEntries(Object.entries(PLATFORMS[platform]).map(([key, value]) => [key, [value]]));
    writeManifest(own, { name: `@latentkit/${name}`, version, description, author, ...rest, ...machine, dependencies });
    writeFileSync(
      join(own, "README.md"),
      `# @latentkit/${name}\n\n${description} npm installs it with latentkit; a program imports \`latentkit\`.\n`,
    );
    return own;
  });
}

/** koffi's compiled part for a platform, by which the driver is asked for its devices: it needs no install script. */
function driverAccess(root, platform) {
  const { os, cpu } = PLATFORMS[platform];
  return { [`@koromix/koffi-${os}-${cpu}`]: manifestOf(root).optionalDependencies.koffi };
}

/**
 * Writes latentkit's own package, which names the packages of platforms as optional dependencies of its version. The
 * checkout's manifest does not: what is not published yet cannot be locked. What the checkout has as optional dependencies
 * are optional peers here: their install scripts would be run, or reported, for everybody.
 * @param {{ root: string, folder: string, packages: readonly string[] }} options packages: names with their scope
 */
// The release writes the platform packages into the manifest: npm ci could not lock what is not published.
export async function writeMainPackage({ root, folder, packages }) {
  const own = join(folder, "latentkit");
  const [{ files }] = JSON.parse(npm(["pack", "--dry-run", "--json", "--ignore-scripts"], root));
  for (const { path } of files) copy(join(root, path), join(own, path));
  for (const part of THIRD_PARTY) {
    // dependencies of the build
    if (part.text.startsWith("node_modules/")) copy(join(root, part.text), join(own, packedText(part)));
  }
  const { scripts: _scripts, devDependencies: _tools, private: _private, ...manifest } = manifestOf(root);
  const exported = Object.values(manifest.exports).flatMap((entry) => (entry.types ? [entry.default] : []));
  await bundle({ dist: join(own, "dist"), exported: exported.map((path) => path.replace("./dist/", "")) });
  await writeInlined({ root, own });
  const platforms = Object.fromEntries(packages.map((name) => [name, manifest.version]));
  const peers = Object.entries(manifest.optionalDependencies).map(([name, version]) => [name, `^${version}`]);
  const optional = peers.map(([name]) => [name, { optional: true }]);
  writeManifest(own, {
    ...manifest,
    optionalDependencies: platforms,
    peerDependencies: { ...manifest.peerDependencies, ...Object.fromEntries(peers) },
    peerDependenciesMeta: { ...manifest.peerDependenciesMeta, ...Object.fromEntries(optional) },
    bundleDependencies: INLINED,
  });
  return own;
}

/** An empty folder. */
export function emptyFolder(folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  return folder;
}

export function manifestOf(folder) {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
}

function writeManifest(folder, manifest) {
  const text = JSON.stringify({ ...manifest, ...repository(), publishConfig: PUBLISHING }, null, 2);
  writeFileSync(join(folder, "package.json"), `${text}\n`);
}

/** npm signs where a tarball was built only for the repository that its manifest names, in that repository's own CI. */
function repository({ GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: name } = process.env) {
  return server && name ? { repository: { type: "git", url: `git+${server}/${name}.git` } } : {};
}

function copy(from, to) {
  mkdirSync(dirname(to), { recursive: true });
  cpSync(from, to);
}
