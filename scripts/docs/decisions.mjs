// docs/decisions.md: written by hand, but for the links to the comments that name a decision ("decision 12").
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../setup.mjs";

const FOLDERS = ["bench", "bin", "native", "scripts", "src"];
const LINKS = / → \[.*$/;

export function body() {
  const files = filesByDecision();
  const lines = readFileSync(join(root, "docs/decisions.md"), "utf8").split("\n");
  const linked = lines.map((line) => {
    const number = /^(\d+)\. /.exec(line)?.[1];
    if (number === undefined) return line;
    const links = [...(files.get(number) ?? [])].sort().map((file) => `[${file}](../${file})`);
    files.delete(number);
    return `${line.replace(LINKS, "")}${links.length === 0 ? "" : ` → ${links.join(", ")}`}`;
  });
  for (const [number, [file]] of files) throw new Error(`${file} names decision ${number}, which does not exist.`);
  return linked.join("\n");
}

/** Files by the number of the decision that a comment in them names. */
function filesByDecision() {
  const files = new Map();
  for (const folder of FOLDERS) {
    for (const entry of readdirSync(join(root, folder), { recursive: true, withFileTypes: true })) {
      const parent = entry.parentPath ?? entry.path;
      if (!entry.isFile() || parent.includes("third_party") || !/\.(ts|mjs|h|cpp|cu|cuh)$/.test(entry.name)) continue;
      const path = join(parent, entry.name);
      if (path.endsWith("scripts/docs/decisions.mjs")) continue;
      const comments = [...readFileSync(path, "utf8").matchAll(/\/\/ decisions? (\d[\d, ]*)/g)];
      for (const number of comments.flatMap(([, list]) => list.match(/\d+/g))) {
        if (!files.has(number)) files.set(number, new Set());
        files.get(number).add(path.slice(root.length));
      }
    }
  }
  return files;
}
