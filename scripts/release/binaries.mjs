// decisions: Cores for musl and Windows are cross-compiled
// Demands of a binary on the system that loads it, read from the file, since few of them can be loaded here.
import assert from "node:assert/strict";
import { run } from "./npm.mjs";
import { muslLibrary, OLDEST_GLIBC } from "./platforms.mjs";

const GLIBC_LIBRARIES = /^(libc\.so\.6|libm\.so\.6|libgcc_s\.so\.1|ld-linux-(x86-64|aarch64)\.so\.[12])$/;
/** Names under which musl's loader takes itself, and the library that Node itself needs there. */
const MUSL_LIBRARIES = /^(libc\.so|libgcc_s\.so\.1)$/;
const WINDOWS_LIBRARIES = /^(KERNEL32\.dll|msvcrt\.dll|node\.exe)$/i;

/**
 * Throws where a binary needs a library or a symbol that its platform may not have. Says nothing of macOS, whose linker
 * checks both.
 * @param {string} platform
 * @param {string} file
 */
export function checkBinary(platform, file) {
  if (platform.startsWith("win32-")) checkWindows(file);
  else if (platform.startsWith("linux")) checkLinux(platform, file);
}

function checkLinux(platform, file) {
  const musl = muslLibrary(platform);
  const libraries = [...run("readelf", ["-dW", file], ".").matchAll(/\(NEEDED\).*\[(.+)\]/g)].map(([, name]) => name);
  const expected = platform.startsWith("linuxmusl-") ? MUSL_LIBRARIES : GLIBC_LIBRARIES;
  assert.deepEqual(
    libraries.filter((name) => !expected.test(name)),
    [],
    `libraries that ${file} needs and ${platform} may not have`,
  );
  const imports = symbolsOf(file).filter(({ isDefined, isWeak }) => !isDefined && !isWeak);
  assert.ok(imports.length > 0, `readelf shows no symbols of ${file}`);
  const missing = musl === undefined ? newerThanGlibc(imports) : absentFrom(musl, imports);
  assert.deepEqual(missing, [], `symbols that ${file} needs and ${platform} may not have`);
}

/** Imports with a version of glibc after the oldest one that is supported. */
function newerThanGlibc(imports) {
  const [major, minor] = OLDEST_GLIBC.split(".").map(Number);
  return imports
    .map(({ name }) => name)
    .filter((name) => {
      const version = /@GLIBC_(\d+)\.(\d+)/.exec(name)?.slice(1).map(Number);
      return version !== undefined && (version[0] > major || (version[0] === major && version[1] > minor));
    });
}

/** Imports that neither musl nor libgcc_s nor Node has. */
function absentFrom(musl, imports) {
  const present = new Set(symbolsOf(musl).flatMap(({ name, isDefined }) => (isDefined ? [withoutVersion(name)] : [])));
  return imports
    .map(({ name }) => name)
    .filter((name) => !/@GCC_|^(napi|node_api)_/.test(name) && !present.has(withoutVersion(name)));
}

const withoutVersion = (name) => name.replace(/@.*/, "");

/** Dynamic symbols of a file, imported ones with their versions. */
function symbolsOf(file) {
  const line = /^ *\d+: [0-9a-f]+ +\S+ \S+ +(GLOBAL|WEAK) +\S+ +(\S+) (\S+)/gm;
  const table = run("readelf", ["-W", "--dyn-syms", file], ".");
  return [...table.matchAll(line)].map(([, binding, section, name]) => ({
    name,
    isWeak: binding === "WEAK",
    isDefined: section !== "UND",
  }));
}

function checkWindows(file) {
  const headers = run("x86_64-w64-mingw32-objdump", ["-p", file], ".");
  const libraries = [...headers.matchAll(/DLL Name: (\S+)/g)].map(([, name]) => name);
  assert.ok(libraries.length > 0, `objdump shows no libraries of ${file}`);
  assert.deepEqual(
    libraries.filter((name) => !WINDOWS_LIBRARIES.test(name)),
    [],
    `libraries that ${file} needs and Windows may not have`,
  );
  assert.match(headers, /\bnapi_register_module_v1\b/, `exports of ${file}`);
}
