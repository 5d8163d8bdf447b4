#!/usr/bin/env node
// node scripts/count-prose.mjs: words of the pages that people write, without generated pages and parts.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const GENERATED = [/<!-- routes: \w+ -->.*?<!-- end of routes -->/gs, /<!-- bench -->.*?<!-- \/bench -->/gs];

const pages = [".", "docs"].flatMap((folder) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith(".md"))
    .map((name) => join(folder, name)),
);
const counts = pages
  .map((page) => ({ page, text: readFileSync(join(root, page), "utf8") }))
  .filter(({ text }) => !text.startsWith("<!-- Generated"))
  .map(({ page, text }) => ({ page, words: wordsOf(GENERATED.reduce((rest, part) => rest.replace(part, ""), text)) }))
  .sort((a, b) => b.words - a.words);

for (const { page, words } of counts) process.stdout.write(`${String(words).padStart(6)} ${page}\n`);
process.stdout.write(`${String(counts.reduce((sum, { words }) => sum + words, 0)).padStart(6)} words\n`);

function wordsOf(text) {
  return text.split(/\s+/).filter((word) => word !== "").length;
}
