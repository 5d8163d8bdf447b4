#!/usr/bin/env node
// Follows docs/adding.md word by word in a copy of the checkout: applies the blocks of a section and runs its commands,
// then leaves out one file of its list after the other, and wants the guard that the list names to fail.
// Arguments are sections ("A node"); without any, all that have blocks. --sample leaves out one file for each guard alone,
// --places only finds the place of each block. Without that the checkout must be built with its tests.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { root } from "./setup.mjs";

/**
 * A block of code for a file: a new file, or lines beside the one line that starts with `anchor`.
 *
 * @typedef {{ file: string, where: "a new file" | "after" | "before" | "instead of", anchor: string, code: string }} Edit
 * @typedef {{ file: string, guard: string }} Row
 * @typedef {{ title: string, rows: Row[], edits: Edit[], commands: string[] }} Section
 */

const PAGE = "docs/adding.md";
const { values: options, positionals: titles } = parseArgs({
  options: { sample: { type: "boolean", default: false }, places: { type: "boolean", default: false } },
  allowPositionals: true,
});
const jobs = String(availableParallelism());
const copy = mkdtempSync(join(tmpdir(), "latentkit-adding-"));
try {
  const all = sectionsOf(readFileSync(join(root, PAGE), "utf8")).filter(({ edits }) => edits.length > 0);
  const sections = all.filter(({ title }) => titles.length === 0 || titles.includes(title));
  assert.ok(
    sections.length >= Math.max(1, titles.length),
    `${PAGE} has no such section with blocks: ${titles.join()}.`,
  );
  if (options.places) for (const { edits } of sections) for (const { file } of edits) textsOf(file, edits, root);
  else {
    copyCheckout();
    for (const section of sections) check(section);
  }
} finally {
  rmSync(copy, { recursive: true, force: true });
}

/** @param {Section} section */
function check({ title, rows, edits, commands }) {
  const started = performance.now();
  const listed = rows.map(({ file }) => file);
  const unlisted = edits.filter(({ file }) => !listed.includes(file)).map(({ file }) => file);
  assert.deepEqual(unlisted, [], `${title}: files with a block that its list does not name`);
  const written = rows.filter(({ file }) => edits.some((edit) => edit.file === file));
  const files = new Map(written.map(({ file }) => [file, textsOf(file, edits, copy)]));
  const generated = rows.filter((row) => !written.includes(row));

  for (const [file, { after }] of files) write(file, after);
  const native = listed.some((file) => file.startsWith("native/"));
  if (native) buildNative();
  expect("tsc", true);
  for (const { file, guard } of generated)
    assert.ok(wants(file, guard).includes(file), `${guard} does not name ${file}`);
  for (const command of commands) {
    const { status, output } = run("bash", ["-euo", "pipefail", "-c", command]);
    assert.equal(status, 0, `${title}: ${command}\n${output}`);
  }
  for (const guard of new Set(rows.map(({ guard }) => guard))) expect(guard, true, listed);
  const isFirst = (/** @type {Row} */ row) => written.find(({ guard }) => guard === row.guard) === row;
  for (const { file, guard } of options.sample ? written.filter(isFirst) : written) {
    const { before, after } = files.get(file) ?? assert.fail();
    write(file, before);
    wants(file, guard);
    write(file, after);
  }
  const seconds = ((performance.now() - started) / 1000).toFixed(0);
  process.stderr.write(`${PAGE}, ${title}: ${edits.length} blocks, ${rows.length} files, in ${seconds} s.\n`);

  /** @param {string} file @param {string} guard */
  function wants(file, guard) {
    const output = expect(guard, false, listed);
    process.stderr.write(`${guard} fails without ${file}\n`);
    return output;
  }
}

/**
 * The sections of the page: the rows of the table, the blocks with a file, the commands.
 *
 * @param {string} page
 * @returns {Section[]}
 */
function sectionsOf(page) {
  return page
    .split(/^## /m)
    .slice(1)
    .map((text) => {
      const rows = [...text.matchAll(/^\| `([^`]+)` \|.*\| `([^`]+)` \|$/gm)].map(([, file = "", guard = ""]) => ({
        file,
        guard,
      }));
      const blocks = [...text.matchAll(/^(.*)\n\n```(\w+)\n([\s\S]*?\n)(?=```$)/gm)];
      const commands = blocks.flatMap(([, , language, code = ""]) => (language === "bash" ? [code] : []));
      const edits = blocks.flatMap(([, lead = "", language, code = ""]) =>
        language === "bash" ? [] : [editOf(lead, code)],
      );
      return { title: text.slice(0, text.indexOf("\n")), rows, edits, commands };
    });
}

/**
 * @param {string} lead
 * @param {string} code
 * @returns {Edit}
 */
function editOf(lead, code) {
  const match = /^`([^`]+)`, (?:(a new file)|(after|before|instead of) `([^`]+)`):$/.exec(lead);
  assert.ok(match, `${PAGE}: a block must follow a line that names its file and place, not ${JSON.stringify(lead)}.`);
  const [, file = "", isNew, where, anchor = ""] = match;
  return { file, where: /** @type {Edit["where"]} */ (isNew ?? where), anchor, code };
}

/**
 * Texts of a file without and with its blocks; undefined: it does not exist.
 *
 * @param {string} file
 * @param {Edit[]} edits
 * @param {string} folder of the checkout, or of its copy
 */
function textsOf(file, edits, folder) {
  const before = existsSync(join(folder, file)) ? readFileSync(join(folder, file), "utf8") : undefined;
  let after = before ?? "";
  for (const edit of edits.filter((edit) => edit.file === file)) after = withEdit(after, edit, before === undefined);
  return { before, after };
}

/**
 * @param {string} text
 * @param {Edit} edit
 * @param {boolean} isAbsent
 */
function withEdit(text, { file, where, anchor, code }, isAbsent) {
  assert.equal(isAbsent, where === "a new file", `${file} is ${isAbsent ? "" : "not "}a new file.`);
  if (isAbsent) return code;
  const lines = text.split("\n");
  const found = lines.flatMap((line, at) => (line.trimStart().startsWith(anchor) ? [at] : []));
  assert.equal(found.length, 1, `${file}: ${found.length} lines start with ${anchor}`);
  const [at = 0] = found;
  lines.splice(where === "after" ? at + 1 : at, where === "instead of" ? 1 : 0, ...code.slice(0, -1).split("\n"));
  return lines.join("\n");
}

/**
 * @param {string} file
 * @param {string | undefined} text
 */
function write(file, text) {
  const path = join(copy, file);
  if (text === undefined) return rmSync(path);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** Tracked files and those to be tracked, what is built, and the packages as links. */
function copyCheckout() {
  const listed = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
    cwd: root,
    encoding: "utf8",
  });
  const typescript = ["dist", "build/test", "build/stamps", "build/tsbuildinfo.json", "build/tsbuildinfo.test.json"];
  for (const path of [...listed.trim().split("\n"), ...typescript].filter((path) => existsSync(join(root, path)))) {
    cpSync(join(root, path), join(copy, path), { recursive: true, preserveTimestamps: true });
  }
  // newer than the sources: CMake's record of the build belongs to the checkout, and nothing could be built by it
  cpSync(join(root, "build/Release"), join(copy, "build/Release"), { recursive: true });
  const packages = join(root, "node_modules");
  mkdirSync(join(copy, "node_modules"));
  for (const name of readdirSync(packages)) {
    symlinkSync(join(packages, name), join(copy, "node_modules", name));
  }
}

/** Without the C++ tests: a guard that is one builds its own. */
function buildNative() {
  const { status, output } = node("scripts/native-build.mjs", "--cuda-test");
  assert.equal(status, 0, output);
}

/**
 * Throws where a guard does not end as it should; returns what it printed.
 *
 * @param {string} guard
 * @param {boolean} passes
 * @param {string[]} files of the list, for the C++ compiler
 */
function expect(guard, passes, files = []) {
  const { status, output } = runGuard(guard, files);
  assert.equal(status === 0, passes, `${guard} ${passes ? "fails" : "passes"}:\n${output}`);
  return output;
}

/**
 * @param {string} guard
 * @param {string[]} files
 * @returns {{ status: number | null, output: string }}
 */
function runGuard(guard, files) {
  if (guard === "tsc") {
    const src = node("node_modules/typescript/bin/tsc", "-p", "tsconfig.json");
    return src.status === 0 ? node("node_modules/typescript/bin/tsc", "-p", "tsconfig.test.json") : src;
  }
  if (guard === "check-layers") return node("scripts/check-layers.mjs");
  if (guard === "docs") return node("scripts/docs.mjs", "--check");
  if (guard === "C++") return compile(files.filter((file) => file.endsWith(".cpp")));
  if (guard.endsWith("_test")) {
    // the set-up of npm test switches them off
    const configure = run("cmake", ["-B", "build", "-DLATENTKIT_TESTS=ON"]);
    assert.equal(configure.status, 0, configure.output);
    const build = run("cmake", ["--build", "build", "--parallel", jobs, "--target", guard]);
    const test = ["--test-dir", "build", "--no-tests=error", "--tests-regex", `^${guard}$`];
    return build.status === 0 ? run("ctest", test) : build;
  }
  assert.match(guard, /^test\/.*\.test\.ts$/);
  // a guard that does not compile is not the one that failed
  expect("tsc", true);
  if (files.some((file) => file.startsWith("native/"))) buildNative();
  return node("node_modules/mocha/bin/mocha.js", `build/${guard.replace(/ts$/, "js")}`);
}

/**
 * Compiles these files as the build does, each into nothing.
 *
 * @param {string[]} files
 */
function compile(files) {
  /** @type {{ file: string, directory: string, command: string }[]} */
  const commands = JSON.parse(readFileSync(join(copy, "build/compile_commands.json"), "utf8"));
  for (const file of files) {
    const entry = commands.find((entry) => entry.file.endsWith(`/${file}`));
    assert.ok(entry, `${file} is not compiled`);
    const command = `cd "${entry.directory}" && ${entry.command.replace(/ -o \S+/, " -fsyntax-only")}`;
    const result = run("bash", ["-c", command]);
    if (result.status !== 0) return result;
  }
  return { status: 0, output: "" };
}

/** @param {string[]} args */
function node(...args) {
  return run(process.execPath, args);
}

/**
 * @param {string} program
 * @param {string[]} args
 */
function run(program, args) {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    cwd: copy,
    encoding: "utf8",
    maxBuffer: 1 << 28,
  });
  return { status, output: `${stdout ?? ""}${stderr ?? ""}${error?.message ?? ""}` };
}
