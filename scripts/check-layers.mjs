#!/usr/bin/env node
// Checks that every file imports only from its own layer or a lower one; docs/decisions.md tells why.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

const LAYERS = {
  errors: 0,
  abort: 0,
  options: 0,
  packages: 0,
  native: 1,
  tensor: 2,
  io: 3,
  host: 4,
  nodes: 5,
  graph: 6,
  render: 7,
  cli: 8,
  service: 8,
  index: 9,
};
// contracts of the nodes, without any node
const ALLOWED_FROM_NODES = {
  graph: ["define", "inputs", "registry", "sockets", "values"].map((name) => `nodes/${name}.ts`),
};
const STRANGERS = [
  ["service", "cli"],
  ["cli", "service"],
];
const MAY_HOLD_STATE = ["native/load.ts"];

/** Violations under a checkout's src/ and native/, one sentence each. */
export function checkLayers(root) {
  return [...checkSources(join(root, "src")), ...checkNative(join(root, "native"))];
}

function checkSources(src) {
  const found = [];
  for (const { file, text } of read(src, /\.ts$/)) {
    const from = layerOf(file);
    if (!(from in LAYERS)) found.push(`src/${file}: "${from}" is no layer.`);
    if (/^(export )?let /m.test(text) && !MAY_HOLD_STATE.includes(file)) found.push(`src/${file}: module-level "let".`);
    for (const [, name] of text.matchAll(/(?:\bfrom|\bimport|\bimport\()\s*"(\.[^"]+)"/g)) {
      const target = posix.join(posix.dirname(file), name).replace(/\.js$/, ".ts");
      const to = layerOf(target);
      const tooHigh = !(LAYERS[to] <= LAYERS[from]) || STRANGERS.some(([a, b]) => from === a && to === b);
      const named = to === "nodes" && ALLOWED_FROM_NODES[from];
      if (tooHigh || (named && !named.includes(target))) found.push(`src/${file}: ${from} may not import ${target}.`);
    }
  }
  return found;
}

function checkNative(native) {
  const found = [];
  for (const { file, text } of read(native, /\.(cpp|c|h|hpp|cu|cuh)$/)) {
    const folder = layerOf(file);
    for (const [, name] of text.matchAll(/^\s*#\s*include\s*["<]([^">]+)[">]/gm)) {
      const isForeign = (folder === "core" || folder === "shared") && /napi|node_api|cuda/.test(name);
      const isInside = (folder === "addon" || folder === "cuda") && /(^|\/)core\//.test(name);
      // the contract, and what every side compiles
      const isAbove = (folder === "shared" || folder === "include") && /^(core|addon|cuda|kernels)\//.test(name);
      if (isForeign || isInside || isAbove) found.push(`native/${file}: ${folder} may not include ${name}.`);
    }
  }
  return found;
}

const layerOf = (file) => file.split("/")[0].replace(/\.ts$/, "");

function* read(folder, pattern) {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !pattern.test(entry.name)) continue;
    const path = join(entry.parentPath ?? entry.path, entry.name);
    yield { file: relative(folder, path).split(sep).join("/"), text: readFileSync(path, "utf8") };
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const found = checkLayers(join(dirname(fileURLToPath(import.meta.url)), ".."));
  for (const line of found) process.stderr.write(`${line}\n`);
  if (found.length > 0) process.exit(1);
}
