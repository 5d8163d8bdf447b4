// docs/api.md: every export of the public entries by task, from the declarations that the compiler writes and from
// scripts/docs/api, which has the order of the functions and an example of each.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../setup.mjs";
import { exportsOf, fieldsOf, referredBy, splitDefault } from "./declarations.mjs";
import { code, table } from "./markdown.mjs";

/** Files of scripts/docs/api. */
const TASKS = ["render", "batch", "nodes", "tensors", "models", "service", "testing"];
/** Section of the helpers whose names stand in a table. */
const TABLE = /^(.+): (\w+(?:, \w+)+)$/;
/** Most signs of a type in a table; the declaration has the rest. */
const MOST_SIGNS = 80;

export function body() {
  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const entries = Object.entries(exports)
    .filter(([, target]) => target.types !== undefined)
    .map(([name, { types }]) => ({ specifier: `latentkit${name.slice(1)}`, exported: exportsOf(join(root, types)) }));
  const all = entries.flatMap(({ specifier, exported }) => exported.map((item) => ({ ...item, specifier })));
  const bare = all.filter(({ comment }) => comment === "").map(({ name }) => name);
  if (bare.length > 0) throw new Error(`Public exports without a doc comment: ${bare.join(", ")}.`);
  const isType = ({ kind }) => kind === "interface" || kind === "type";
  const values = new Map(all.filter((item) => !isType(item)).map((item) => [item.name, item]));
  const options = new Set();
  const tasks = TASKS.map((name) => readTask(name, values, options));
  const missing = [...values.values()].filter(({ kind }) => kind !== "class").map(({ name }) => name);
  if (missing.length > 0) throw new Error(`scripts/docs/api has no section for ${missing.join(", ")}.`);
  // classes that functions return: entries export their types
  const isListed = (item) => isType(item) || values.has(item.name);
  return `
# API reference

This page lists everything that the package exports, by task. \`import\` and \`require\` both work; every name has its types.
Unknown options are refused. Functions throw, or reject with, a [\`LatentkitError\`](errors.md). Each example is a program
that runs.

${tasks.map(({ title, names }) => `- [${title}](#${anchor(title)}): ${names.map(link).join(", ")}`).join("\n")}
- [Types](#types)

${tasks.map(({ text }) => text).join("\n\n")}

# Types

${typeSections(entries, { options, isListed })}
`;
}

const anchor = (heading) =>
  heading
    .toLowerCase()
    .replace(/[^\w -]/g, "")
    .replaceAll(" ", "-");
const link = (heading) =>
  /^\w+$/.test(heading) ? `[\`${heading}\`](#${anchor(heading)})` : `[${heading}](#${anchor(heading)})`;

/** A task's file: its title, a sentence, and a section for each function. Takes the functions out of `values`. */
function readTask(name, values, options) {
  const file = `scripts/docs/api/${name}.md`;
  const [head, ...sections] = readFileSync(join(root, file), "utf8").split(/^## /m);
  const names = [];
  const texts = sections.map((section) => {
    const end = section.indexOf("\n");
    const heading = section.slice(0, end);
    const example = section.slice(end).trim();
    if (!/^```(js|bash)$/m.test(example)) throw new Error(`${file}: ${heading} has no example.`);
    const [, title = heading, listed] = TABLE.exec(heading) ?? [];
    names.push(title);
    if (listed === undefined) return functionSection(takeOut(values, title, file), example, options);
    const rows = listed.split(", ").map((helper) => [code(helper), takeOut(values, helper, file).comment]);
    return `### ${title}\n\n${table([["Name", "Meaning"], ...rows])}\n\n${example}`;
  });
  const title = /^# (.+)$/m.exec(head)?.[1] ?? name;
  return { title, names, text: [head.trim(), ...texts].join("\n\n") };
}

function takeOut(values, name, file) {
  const value = values.get(name);
  if (value === undefined) throw new Error(`${file}: no entry exports ${name}.`);
  values.delete(name);
  return value;
}

function functionSection(item, example, options) {
  const { name, comment, text, file, specifier } = item;
  const parts = [`### ${name}`, comment.replaceAll("\n", " ")];
  parts.push(`From \`${specifier}\`.`, `\`\`\`ts\n${text}\n\`\`\``);
  const type = /\b(?:options|overrides)\??: (\w+(?:Options|Overrides))\b/.exec(text)?.[1];
  if (type !== undefined) {
    options.add(type);
    parts.push(`Options (\`${type}\`):`, optionsTable(file, type));
  }
  return [...parts, example].join("\n\n");
}

function optionsTable(file, type) {
  const rows = fieldsOf(file, type).map((field) => {
    if (field.comment === "") throw new Error(`${type}: the option ${field.name} has no doc comment.`);
    const { fallback, meaning } = splitDefault(field.comment);
    if (meaning === "")
      throw new Error(`${type}: the doc comment of the option ${field.name} has nothing but a default.`);
    const short = field.type.length > MOST_SIGNS ? "see the type" : code(field.type);
    return [
      code(field.name),
      short,
      field.isOptional ? fallback || (field.type === "boolean" ? "false" : "none") : "required",
      meaning,
    ];
  });
  return table([["Option", "Type", "Default", "Meaning"], ...rows]);
}

/** Types by entry, then those that exports refer to; options are in the tables of their functions. */
function typeSections(entries, { options, isListed }) {
  const listed = new Set(options);
  for (const { exported } of entries) for (const { name } of exported) listed.add(name);
  const shown = new Set(options);
  return entries
    .flatMap(({ specifier, exported }) => {
      const types = exported.filter((item) => isListed(item) && !shown.has(item.name));
      const referred = referredBy(exported, (name) => listed.has(name));
      for (const { name } of [...types, ...referred]) shown.add(name);
      for (const { name } of referred) listed.add(name);
      const parts = [];
      if (types.length > 0) parts.push(`## Types of ${specifier}`, ...types.map(declaration));
      if (referred.length > 0) parts.push(`## Types that those of ${specifier} refer to`, ...referred.map(declaration));
      return parts;
    })
    .join("\n\n");
}

function declaration({ name, comment, text }) {
  return [`### ${name}`, comment.replaceAll("\n", " "), `\`\`\`ts\n${text}\n\`\`\``]
    .filter((part) => part !== "")
    .join("\n\n");
}
