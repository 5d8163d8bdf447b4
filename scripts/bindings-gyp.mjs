#!/usr/bin/env node
// Writes bindings.gyp from the CMake targets, as they are on Linux with a CUDA compiler. Needs Linux and npm ci.
//   --check   writes nothing, fails where the file is stale (test/unit/native/sources.test.ts)
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { root } from "./setup.mjs";

const FILE = join(root, "bindings.gyp");
const HEADING = `# The build of CMakeLists.txt for node-gyp, for those who cannot run CMake: copy it to binding.gyp, then node-gyp build.
# Not named binding.gyp, since npm compiles every package that holds one. Written by scripts/bindings-gyp.mjs.
`;
const CPUS = { x64: "x86_64", arm64: "aarch64" };
const TYPES = {
  MODULE_LIBRARY: "loadable_module",
  STATIC_LIBRARY: "static_library",
  OBJECT_LIBRARY: "static_library",
};
const NVCC = "<(nvcc)";
const ADDON_API = "<!(node -p \"require('node-addon-api').include_dir\")";

/** The text of bindings.gyp. */
function bindings() {
  const folder = mkdtempSync(join(tmpdir(), "latentkit-gyp-"));
  try {
    const byCpu = Object.entries(CPUS).map(([cpu, processor]) => configured(join(folder, cpu), processor));
    const names = new Set(byCpu.flatMap(({ targets }) => [...targets.keys()]));
    const targets = [...names].map((name) => merged(byCpu.map((build) => gypTarget(build, name))));
    return `${HEADING}${JSON.stringify({ targets }, null, 2)}\n`;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** CMake's own description of the build for a processor; nothing is compiled for it. */
function configured(folder, processor) {
  const api = join(folder, ".cmake/api/v1");
  mkdirSync(join(api, "query"), { recursive: true });
  writeFileSync(join(api, "query/codemodel-v2"), "");
  const nvcc = join(folder, "nvcc");
  writeFileSync(nvcc, "#!/bin/sh\necho release 13.0\n");
  chmodSync(nvcc, 0o755);
  const options = [
    ["CMAKE_SYSTEM_NAME", "Linux"],
    ["CMAKE_SYSTEM_PROCESSOR", processor],
    ["CMAKE_BUILD_TYPE", "Release"],
    ["LATENTKIT_CUDA", "ON"],
    ["LATENTKIT_NVCC", nvcc],
  ].map(([name, value]) => `-D${name}=${value}`);
  const env = { ...process.env, CFLAGS: "", CXXFLAGS: "", LDFLAGS: "", CUDACXX: "" };
  execFileSync("cmake", ["-S", root, "-B", folder, "-G", "Unix Makefiles", ...options], { env, stdio: "pipe" });
  const reply = (name) => JSON.parse(readFileSync(join(api, "reply", name), "utf8"));
  const model = reply(readdirSync(join(api, "reply")).find((name) => name.startsWith("codemodel-")));
  const isOurs = ({ name }) => /^latentkit(_|$)/.test(name) && !name.endsWith("_for_tests");
  const targets = model.configurations[0].targets.filter(isOurs).map(({ name, jsonFile }) => [name, reply(jsonFile)]);
  return { folder, targets: new Map(targets) };
}

function gypTarget({ folder, targets }, name) {
  const target = targets.get(name);
  if (target === undefined) return undefined;
  const [group] = target.compileGroups;
  const flags = group.compileCommandFragments.flatMap(({ fragment }) => words(fragment));
  const inGyp = (text) => text.replaceAll(join(folder, "native/cuda"), "<(module_root_dir)/build");
  const link = (role) =>
    (target.link?.commandFragments ?? [])
      .filter((part) => part.role === role)
      .flatMap(({ fragment }) => words(fragment));
  // in quotes, since node-gyp's make hands a linker's flags to the shell as they are
  const linkFlags = link("flags").map((flag) =>
    flag.includes(root) ? `'${flag.replace(root, "<(module_root_dir)/")}'` : flag,
  );
  return {
    target_name: name,
    type: TYPES[target.type],
    sources: target.sources.filter(({ isGenerated }) => !isGenerated).map(({ path }) => path),
    dependencies: (target.dependencies ?? []).map(({ id }) => id.split("::")[0]).filter((other) => targets.has(other)),
    include_dirs: (group.includes ?? []).flatMap(({ path }) => includeFolder(path)),
    defines: (group.defines ?? []).map(({ define }) => inGyp(define)).filter((define) => !define.endsWith("_EXPORTS")),
    [group.language === "C" ? "cflags_c" : "cflags_cc"]: flags,
    // Node's own settings, which CMake does not have
    "cflags_cc!": ["-fno-exceptions", "-fno-rtti"].filter((flag) => group.language === "CXX" && !flags.includes(flag)),
    libraries: link("libraries").filter((library) => library.startsWith("-l")),
    conditions: linkFlags.length > 0 ? [["OS=='linux'", { ldflags: linkFlags }]] : [],
    ...(name === "latentkit_cuda" && kernels(folder, inGyp)),
  };
}

/** The one command that is neither a compiler's nor a linker's. */
function kernels(folder, inGyp) {
  const makefile = join(folder, "native/cuda/CMakeFiles/latentkit_cuda.dir/build.make");
  const command = /&& (\S*nvcc -fatbin .*)$/m.exec(readFileSync(makefile, "utf8"))?.[1];
  if (command === undefined) throw new Error(`${makefile} has no command of nvcc.`);
  const action = words(command).map((word, i) =>
    i === 0 ? NVCC : inGyp(word.startsWith(root) ? relative(root, word) : word),
  );
  const inputs = action.slice(-1);
  const outputs = action.slice(-2, -1);
  const actions = [{ action_name: "kernels", inputs, outputs, action }];
  // node-gyp names every module .node, and would leave out an archive that no source refers to
  const library = { product_extension: "so", ldflags: ["-Wl,--undefined=latentkit_cuda"] };
  return { variables: { "nvcc%": "nvcc" }, actions, target_conditions: [["OS=='linux'", library]] };
}

/** The words of a command as CMake writes it: one with a blank is in quotes. */
const words = (command) => (command.match(/"[^"]*"|\S+/g) ?? []).map((word) => word.replace(/^"(.*)"$/, "$1"));

function includeFolder(path) {
  if (path.endsWith("/node-addon-api")) return [ADDON_API];
  const inside = relative(root, join(path));
  return inside.startsWith("node_modules/") ? [] : [inside];
}

/** One target of the targets for each processor: what all have, and conditions for the rest. */
function merged(each) {
  const [target] = each.filter((one) => one !== undefined);
  const cpus = Object.keys(CPUS).map((cpu, i) => ({ cpu, one: each[i] }));
  const having = cpus.filter(({ one }) => one !== undefined);
  const conditions = [...target.conditions];
  if (having.length < cpus.length)
    conditions.push([having.map(({ cpu }) => `target_arch!='${cpu}'`).join(" and "), { type: "none" }]);
  const common = {};
  for (const key of ["sources", "dependencies"]) {
    common[key] = target[key].filter((entry) => having.every(({ one }) => one[key].includes(entry)));
    for (const { cpu, one } of having) {
      const own = one[key].filter((entry) => !common[key].includes(entry));
      if (own.length > 0) conditions.push([`target_arch=='${cpu}'`, { [key]: own }]);
    }
  }
  const entries = Object.entries({ ...target, ...common, conditions });
  return Object.fromEntries(entries.filter(([, value]) => !Array.isArray(value) || value.length > 0));
}

const text = bindings();
if (!process.argv.includes("--check")) {
  writeFileSync(FILE, text);
} else if (readFileSync(FILE, "utf8") !== text) {
  process.stderr.write("bindings.gyp is not what CMakeLists.txt says: run node scripts/bindings-gyp.mjs.\n");
  process.exit(1);
}
