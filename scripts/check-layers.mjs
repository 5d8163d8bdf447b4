#!/usr/bin/env node
// Checks how the sources hang together: who imports whom, which exports are used, and that elementary functions
// come from the core. The tables are in layers/floors.mjs; docs/architecture.md has the picture.
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import * as house from "./layers/floors.mjs";
import { arrowsOf, circlesOf, readSources } from "./layers/imports.mjs";

/**
 * @typedef {import("./layers/imports.mjs").Source} Source
 * @typedef {import("./layers/imports.mjs").Arrow} Arrow
 * @typedef {"layer" | "floor" | "type-floor" | "narrow" | "face" | "entry" | "circle" | "type-circle" | "state"
 *   | "comment" | "export" | "elementary" | "native"} Rule
 * @typedef {{ rule: Rule, text: string }} Finding
 * @typedef {typeof house} House
 */

/**
 * Violations in a checkout, one sentence each.
 *
 * @param {string} root
 * @param {House} [tables]
 * @returns {Finding[]}
 */
export function checkLayers(root, tables = house) {
  const sources = readSources(join(root, "src"), /\.tsx?$/);
  const native = readSources(join(root, "native"), /\.(cpp|c|h|hpp|cu|cuh)$/).filter(
    ({ file }) => !file.startsWith("third_party/"),
  );
  const programs = ["bin", "scripts", "bench"].flatMap((folder) => {
    const inFolder = readSources(join(root, folder), /\.mjs$/);
    return inFolder.map(({ file, text }) => ({ file: `${folder}/${file}`, text }));
  });
  const arrows = sources.flatMap(arrowsOf);
  return [
    ...arrows.flatMap((arrow) => checkArrow(arrow, tables)),
    ...checkFloors(sources, tables),
    ...checkEntries(sources, tables),
    ...checkCircles(arrows),
    ...sources.filter(({ file }) => !tables.MAY_HOLD_STATE.includes(file)).flatMap(checkState),
    ...sources.filter(({ file }) => file !== "native/elementary.ts").flatMap(checkElementary),
    ...checkExports({ sources, arrows, programs, entries: tables.ENTRIES }),
    ...[...prefixed("src", sources), ...programs].flatMap(checkComments),
    ...native.flatMap(checkNative),
  ];
}

/**
 * @param {string} folder
 * @param {readonly Source[]} sources
 */
const prefixed = (folder, sources) => sources.map(({ file, text }) => ({ file: `${folder}/${file}`, text }));

/**
 * Floor of a file or folder name ("cuda/") in its folder; undefined if none has it.
 *
 * @param {House} tables
 * @param {string} folder
 * @param {string} name
 */
function floorOf({ FLOORS }, folder, name) {
  const floors = (FLOORS[folder] ?? []).map((floor) => floor.split(" "));
  const index = floors.findIndex((names) => names.includes(name));
  if (index >= 0 || name.endsWith("/")) return index < 0 ? undefined : index;
  const rest = floors.findIndex((names) => names.includes("*"));
  return rest < 0 ? undefined : rest;
}

/**
 * Where the ways to two files part: the folder that holds both, and the name of each in it.
 *
 * @param {string} a
 * @param {string} b
 */
function parting(a, b) {
  const [from, to] = [a.split("/"), b.split("/")];
  let depth = 0;
  while (depth < from.length - 1 && depth < to.length - 1 && from[depth] === to[depth]) depth++;
  /** @param {string[]} parts */
  const nameAt = (parts) => (parts[depth] ?? "").replace(/\.tsx?$/, "") + (depth < parts.length - 1 ? "/" : "");
  return { folder: from.slice(0, depth).join("/"), from: nameAt(from), to: nameAt(to) };
}

/**
 * @param {Arrow} arrow
 * @param {House} tables
 * @returns {Finding[]}
 */
function checkArrow({ from, to, isType }, tables) {
  /** @type {Finding[]} */
  const findings = [];
  const text = `src/${from} may not import ${to}`;
  const at = parting(from, to);
  const [own, other] = [floorOf(tables, at.folder, at.from), floorOf(tables, at.folder, at.to)];
  const areFiles = !at.from.endsWith("/") && !at.to.endsWith("/");
  if (own !== undefined && other !== undefined && (other > own || (other === own && !areFiles))) {
    const rule = at.folder === "" ? "layer" : isType ? "type-floor" : "floor";
    findings.push({ rule, text: `${text}: ${at.to} is not below ${at.from}.` });
  }
  for (const narrow of tables.NARROW) {
    const isNarrow = from.startsWith(narrow.from) && to.startsWith(narrow.to) && !narrow.only.includes(to);
    if (isNarrow) findings.push({ rule: "narrow", text: `${text}, only ${narrow.only.join(", ")}.` });
  }
  for (const [room, face] of Object.entries(tables.FACES)) {
    const isInside = to.startsWith(`${room}/`) && !from.startsWith(`${room}/`) && to !== `${room}/${face}`;
    if (isInside) findings.push({ rule: "face", text: `${text}, only ${room}/${face}.` });
  }
  return findings;
}

/**
 * Files and folders that no floor names.
 *
 * @param {readonly Source[]} sources
 * @param {House} tables
 * @returns {Finding[]}
 */
function checkFloors(sources, tables) {
  const names = placesOf(sources);
  const ordered = new Set([...names].filter((at) => at.endsWith("/")).map((at) => at.split(":")[0]));
  return [...names].flatMap((at) => {
    const [folder = "", name = ""] = at.split(":");
    if (!ordered.has(folder) || floorOf(tables, folder, name) !== undefined) return [];
    const text = `src/${folder === "" ? "" : `${folder}/`}${name} has no floor in scripts/layers/floors.mjs.`;
    return [{ rule: folder === "" ? "layer" : "floor", text }];
  });
}

/**
 * Entries of the tables that match no file: what they named has moved, and what stands there now has no rule.
 *
 * @param {readonly Source[]} sources
 * @param {House} tables
 * @returns {Finding[]}
 */
function checkEntries(sources, { FLOORS, NARROW, FACES, MAY_HOLD_STATE, ENTRIES }) {
  const places = [...placesOf(sources)];
  const files = sources.map(({ file }) => file);
  const onFloors = Object.entries(FLOORS).flatMap(([folder, floors]) => {
    const names = floors.flatMap((floor) => floor.split(" "));
    const there = places.filter((at) => at.split(":")[0] === folder).map((at) => String(at.split(":")[1]));
    const others = there.filter((name) => !name.endsWith("/") && !names.includes(name));
    const unmatched = names.filter((name) => (name === "*" ? others.length === 0 : !there.includes(name)));
    return unmatched.map((name) => `FLOORS["${folder}"], "${name}"`);
  });
  const named = [
    ...NARROW.flatMap(({ from, to, only }) => [from, to, ...only].map((path) => ["NARROW", path])),
    ...Object.entries(FACES).map(([room, face]) => ["FACES", `${room}/${face}`]),
    ...MAY_HOLD_STATE.map((file) => ["MAY_HOLD_STATE", file]),
    ...ENTRIES.map((file) => ["ENTRIES", file]),
  ];
  const others = named
    .filter(([, path = ""]) => !files.some((file) => (path.endsWith("/") ? file.startsWith(path) : file === path)))
    .map(([table, path]) => `${table}, "${path}"`);
  return [...onFloors, ...others].map((entry) => ({
    rule: "entry",
    text: `scripts/layers/floors.mjs: ${entry} matches no file of src.`,
  }));
}

/**
 * Every file and folder as "FOLDER:NAME", folders with "/" at their end.
 *
 * @param {readonly Source[]} sources
 */
const placesOf = (sources) =>
  new Set(
    sources.flatMap(({ file }) => {
      const parts = file.split("/");
      return parts.map((_, i) => `${parts.slice(0, i).join("/")}:${nameOf(parts, i)}`);
    }),
  );

/**
 * @param {string[]} parts
 * @param {number} i
 */
const nameOf = (parts, i) => (i < parts.length - 1 ? `${parts[i]}/` : String(parts[i]).replace(/\.tsx?$/, ""));

/**
 * Circles that exist at run time, and those that need an import of types to close.
 *
 * @param {readonly Arrow[]} arrows
 * @returns {Finding[]}
 */
function checkCircles(arrows) {
  const values = circlesOf(arrows.filter(({ isType }) => !isType)).map((circle) => circle.join(" → "));
  const all = circlesOf(arrows).map((circle) => circle.join(" → "));
  return [
    ...values.map((circle) => ({ rule: /** @type {const} */ ("circle"), text: `Circle of imports: ${circle}.` })),
    ...all
      .filter((circle) => !values.includes(circle))
      .map((circle) => ({ rule: /** @type {const} */ ("type-circle"), text: `Circle of types: ${circle}.` })),
  ];
}

const STATE = /^(?:export )?(?:let (\w+)|const (\w+)\b[^\n=]*= new (?:Weak)?(?:Map|Set)(?:<[^\n(]*>)?\(\);)/gm;

/**
 * @param {Source} source
 * @returns {Finding[]}
 */
function checkState({ file, text }) {
  return [...text.matchAll(STATE)]
    .filter(([statement]) => !/: Readonly(Set|Map)</.test(statement))
    .map(([, variable, constant]) => ({
      rule: "state",
      text: `src/${file}: "${variable ?? constant}" is module state.`,
    }));
}

/** Math without the functions that are exact in every engine, and powers of anything but 2. */
const INEXACT =
  /\bMath\b(?!\.(?:abs|ceil|clz32|floor|fround|imul|max|min|round|sign|sqrt|trunc|PI|SQRT2)\b)(?:\.\w+)?|\S+ \*\*=?(?= )/g;

/**
 * Functions whose last bits each engine chooses itself: results would depend on the version of Node.
 *
 * @param {Source} source
 * @returns {Finding[]}
 */
function checkElementary({ file, text }) {
  return [...text.matchAll(INEXACT)]
    .filter(([use]) => !/(?:^|[^\w.])2n? \*\*$/.test(use))
    .map(([use]) => ({
      rule: "elementary",
      text: `src/${file}: "${use}" differs between engines; native/elementary.ts has the functions for it.`,
    }));
}

const EXPORT =
  /(\/\*\*(?:[^*]|\*(?!\/))*\*\/\s*)?^export (?:async )?(?:abstract )?(?:const|function\*?|class|enum) (\w+)/gm;

/**
 * Exported values that no source and no program imports; one for tests alone says "@internal".
 *
 * @param {{
 *   sources: readonly Source[], arrows: readonly Arrow[], programs: readonly Source[], entries: readonly string[]
 * }} tree
 * @returns {Finding[]}
 */
function checkExports({ sources, arrows, programs, entries }) {
  const used = new Set(arrows.flatMap(({ to, names }) => names.map((name) => `${to}:${name}`)));
  const outside = programs.map(({ text }) => text).join("\n");
  return sources.flatMap(({ file, text }) => {
    if (entries.includes(file) || used.has(`${file}:*`)) return [];
    return [...text.matchAll(EXPORT)]
      .filter(([, comment = "", name]) => !used.has(`${file}:${name}`) && !comment.includes("@internal"))
      .filter(([, , name]) => !outside.includes(file.replace(/\.tsx?$/, ".js")) || !outside.includes(String(name)))
      .map(([, , name]) => ({ rule: "export", text: `src/${file}: nothing but tests imports "${name}".` }));
  });
}

/**
 * @param {Source} source
 * @returns {Finding[]}
 */
function checkComments({ file, text }) {
  return [...text.matchAll(/\/\*\*[\s*]*((?:What|Of|Who|That)\b[^\n]{0,40})/g)].map(([, words]) => ({
    rule: "comment",
    text: `${file}: a doc comment starts with a noun phrase or a verb, not with "${words}".`,
  }));
}

/**
 * @param {Source} source
 * @returns {Finding[]}
 */
function checkNative({ file, text }) {
  const folder = String(file.split("/")[0]);
  /** @type {Finding[]} */
  const findings = [];
  for (const [, name = ""] of text.matchAll(/^\s*#\s*include\s*["<]([^">]+)[">]/gm)) {
    const isForeign = (folder === "core" || folder === "shared") && /napi|node_api|cuda/.test(name);
    const isInside = (folder === "addon" || folder === "cuda") && /(^|\/)core\//.test(name);
    // the contract, and what every side compiles
    const isAbove = (folder === "shared" || folder === "include") && /^(core|addon|cuda|kernels)\//.test(name);
    if (isForeign || isInside || isAbove) {
      findings.push({ rule: "native", text: `native/${file}: ${folder} may not include ${name}.` });
    }
  }
  return findings;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const findings = checkLayers(join(dirname(fileURLToPath(import.meta.url)), ".."));
  for (const { text } of findings) process.stderr.write(`${text}\n`);
  if (findings.length > 0) process.exit(1);
}
