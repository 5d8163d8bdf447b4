// docs/api.md: every export of the public entries, from the declarations that the compiler writes.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../setup.mjs";
import { exportsOf, referredBy } from "./declarations.mjs";

/** Entries of package.json that have declarations, with a line about each. */
const ENTRIES = {
  ".": "Graphs, nodes, tensors, noise, PNG, batches.",
  "./models": "People's own checkpoints, on ONNX Runtime.",
  "./hooks": "The hook service as a library, to mount in an application of your own.",
  "./postgres": "A store of the hook service in PostgreSQL, and the workers that share it.",
  "./service": "The hook service with its own hardened HTTP server.",
  "./testing": "Comparison of rendered graphs with snapshots, for vitest, jest and mocha.",
};

export function body() {
  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const entries = Object.entries(exports).filter(([, target]) => target.types !== undefined);
  const listed = new Set();
  const sections = entries.map(([name, { types }]) => entrySection(name, exportsOf(join(root, types)), listed));
  return `
# API reference

Everything that the package exports. \`import\` and \`require\` both work; every name has its types. Options that a function
does not know are refused. Functions throw, or reject with, a [\`LatentkitError\`](errors.md).

${sections.join("\n\n")}
`;
}

function entrySection(entry, declarations, listed) {
  if (ENTRIES[entry] === undefined) throw new Error(`scripts/docs/api.mjs: the entry ${entry} has no line.`);
  const specifier = entry === "." ? "latentkit" : `latentkit/${entry.slice(2)}`;
  const bare = declarations.filter(({ comment }) => comment === "").map(({ name }) => name);
  if (bare.length > 0) throw new Error(`Public exports without a doc comment: ${bare.join(", ")}.`);
  const isValue = ({ kind }) => kind !== "interface" && kind !== "type";
  for (const { name } of declarations) listed.add(name);
  const referred = referredBy(declarations, (name) => listed.has(name));
  for (const { name } of referred) listed.add(name);
  const parts = [`# \`import … from "${specifier}"\``, ENTRIES[entry]];
  for (const [title, list] of [
    ["Functions, classes and values", declarations.filter(isValue)],
    ["Types", declarations.filter((item) => !isValue(item))],
    ["Types that these refer to", referred],
  ]) {
    if (list.length > 0) parts.push(`## ${title} of ${specifier}`, ...list.map(declaration));
  }
  return parts.join("\n\n");
}

function declaration({ name, comment, text }) {
  return [`### ${name}`, comment.replaceAll("\n", " "), `\`\`\`ts\n${text}\n\`\`\``]
    .filter((part) => part !== "")
    .join("\n\n");
}
