import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { commentText } from "./markdown.mjs";

// Reads the compiler's .d.ts files. They are regular: each statement begins at the start of a line, its comment above it.

/** Exports of a declaration file in order: `{ name, kind, comment, file, text }`, re-exports resolved. */
export function exportsOf(file) {
  const text = readFileSync(file, "utf8");
  const names = [...text.matchAll(/^export (?:type )?\{([^}]*)\} from "([^"]+)";/gm)].flatMap(([, list, from]) =>
    list
      .split(",")
      .map((name) => name.trim().replace(/^type /, ""))
      .filter((name) => name !== "")
      .map((name) => ({ name, from: join(dirname(file), from.replace(/\.js$/, ".d.ts")) })),
  );
  const own = [...text.matchAll(/^export (?:declare )?(?:function|class|const|interface|type) (\w+)/gm)];
  names.push(...[...new Set(own.map(([, name]) => name))].map((name) => ({ name, from: file })));
  return names.map(({ name, from }) => findDeclaration(from, name) ?? fail(file, name));
}

/**
 * Types that declarations refer to and no entry exports, such as what `defineNode` takes, where a comment explains them.
 * They are looked for in the file of the declaration and in what it imports.
 */
export function referredBy(declarations, isListed) {
  const referred = new Map();
  for (const { file, text } of declarations) {
    const imports = importsOf(file);
    for (const [name] of text.replace(/\/\*\*[\s\S]*?\*\//g, "").matchAll(/\b[A-Z]\w+/g)) {
      if (isListed(name) || referred.has(name)) continue;
      const declared = findDeclaration(imports.get(name) ?? file, name);
      const isType = declared?.kind === "interface" || declared?.kind === "type";
      if (isType && declared.comment !== "") referred.set(name, declared);
    }
  }
  return [...referred.values()];
}

/** Files of the package that a declaration file imports names from. */
function importsOf(file) {
  const text = readFileSync(file, "utf8");
  const statements = [...text.matchAll(/^import (?:type )?\{([^}]*)\} from "(\.[^"]+)";/gm)];
  return new Map(
    statements.flatMap(([, list, from]) =>
      list
        .split(",")
        .map((name) => [name.trim().replace(/^type /, ""), join(dirname(file), from.replace(/\.js$/, ".d.ts"))]),
    ),
  );
}

function fail(file, name) {
  throw new Error(`${file}: no declaration of ${name} was found.`);
}

function findDeclaration(file, name) {
  const statements = statementsOf(file).filter((statement) => statement.name === name);
  if (statements.length > 0) {
    // overloads: one declaration of several signatures
    const [{ kind, comment }] = statements;
    return { name, kind, comment, file, text: statements.map(({ text }) => text).join("\n") };
  }
  const text = readFileSync(file, "utf8");
  for (const [, list, from] of text.matchAll(/^export (?:type )?\{([^}]*)\} from "([^"]+)";/gm)) {
    const names = list.split(",").map((item) => item.trim().replace(/^type /, ""));
    if (names.includes(name)) return findDeclaration(join(dirname(file), from.replace(/\.js$/, ".d.ts")), name);
  }
  for (const [, from] of text.matchAll(/^export (?:type )?\* from "(\.[^"]+)";/gm)) {
    const declared = findDeclaration(join(dirname(file), from.replace(/\.js$/, ".d.ts")), name);
    if (declared !== undefined) return declared;
  }
  return undefined;
}

const START = /^(?:export )?(?:declare )?(?:abstract )?(function|class|const|interface|type) (\w+)/;
/** Start of another statement; a union's comments begin at the start of a line too, but a bar follows them. */
const NEXT = /^(export|declare|import|interface|type|const|function|class)\b/;

function statementsOf(file) {
  const lines = readFileSync(file, "utf8").split("\n");
  const statements = [];
  let comment = "";
  for (let i = 0; i < lines.length; i++) {
    if (lines[i].startsWith("/**")) {
      const end = lines.findIndex((line, at) => at >= i && line.endsWith("*/"));
      comment = commentText(lines.slice(i, end + 1).join("\n"));
      i = end;
      continue;
    }
    const [, kind, name] = START.exec(lines[i]) ?? [];
    if (kind !== undefined) {
      const end = endOf(lines, i);
      statements.push({ name, kind, comment, text: publicPart(lines.slice(i, end)) });
      i = end - 1;
    }
    comment = "";
  }
  return statements;
}

/** Number of the line behind the statement that begins in line `start`. */
function endOf(lines, start) {
  let end = start + 1;
  while (end < lines.length && !NEXT.test(lines[end])) {
    if (lines[end].startsWith("/**") && !commentsUnionMember(lines, end)) break;
    end++;
  }
  return end;
}

function commentsUnionMember(lines, start) {
  const end = lines.findIndex((line, at) => at >= start && line.endsWith("*/"));
  return /^ *[|&]/.test(lines[end + 1] ?? "");
}

/** Without private and internal members, and without what only a compiler needs. */
function publicPart(lines) {
  const visible = [];
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i];
    if (/^ +(private |#private;|static #)/.test(line)) {
      dropComment(visible);
      continue;
    }
    if (/^ +\/\*\* @internal/.test(line)) {
      while (!lines[i].endsWith("*/")) i++;
      i++;
      continue;
    }
    visible.push(line);
  }
  return visible
    .join("\n")
    .trim()
    .replace(/^(export )?(declare )?/, "")
    .replaceAll("    ", "  ");
}

function dropComment(lines) {
  if (!lines.at(-1)?.trimEnd().endsWith("*/")) return;
  while (lines.length > 0 && !lines.at(-1).trimStart().startsWith("/**")) lines.pop();
  lines.pop();
}

// Fields of options types in the compiler's declarations, inherited ones included.

/** @typedef {{ name: string, type: string, isOptional: boolean, comment: string }} Field */

/**
 * Fields of an interface, or of a type that is made of interfaces, in their order; those of the base come last.
 * @param {string} file that refers to the type
 * @param {string} name
 * @returns {Field[]}
 */
export function fieldsOf(file, name) {
  const declared = findDeclaration(importsOf(file).get(name) ?? file, name);
  if (declared === undefined) throw new Error(`${file}: no declaration of ${name} was found.`);
  const { text } = declared;
  const start = text.indexOf("{");
  const head = start < 0 ? text : text.slice(0, start);
  const own = start < 0 ? [] : membersOf(text.slice(start + 1, text.lastIndexOf("}")));
  const bases = /\bextends ([\s\S]+)$/.exec(head)?.[1] ?? /=\s*([\s\S]+?)(?:&\s*)?$/.exec(head)?.[1] ?? "";
  const inherited = splitAtTop(bases, /[,&]/).flatMap((base) => fieldsOfExpression(declared.file, base));
  const known = new Set(own.map((field) => field.name));
  return [...own, ...inherited.filter((field) => !known.has(field.name))];
}

/** Fields of `Omit<Base, "a" | "b">`, `Pick<…>`, `Readonly<…>`, `Partial<…>` or a name. */
function fieldsOfExpression(file, expression) {
  const [, wrapper, inside] = /^(\w+)<([\s\S]+)>;?$/.exec(expression.trim()) ?? [];
  if (wrapper === undefined) return fieldsOf(file, expression.trim().replace(/;$/, ""));
  const [base, names = ""] = splitAtTop(inside, /,/);
  const fields = fieldsOfExpression(file, base);
  const isNamed = ({ name }) => [...names.matchAll(/"(\w+)"/g)].some(([, known]) => known === name);
  if (wrapper === "Omit") return fields.filter((field) => !isNamed(field));
  if (wrapper === "Pick") return fields.filter(isNamed);
  if (wrapper === "Partial") return fields.map((field) => ({ ...field, isOptional: true }));
  if (wrapper === "Readonly") return fields;
  throw new Error(`scripts/docs/options.mjs: ${expression.trim()} is none of the forms that it reads.`);
}

/** Parts of a text between signs that stand in no bracket. */
function splitAtTop(text, sign) {
  const parts = [""];
  let depth = 0;
  for (const [index, letter] of [...text].entries()) {
    if ("<({[".includes(letter)) depth++;
    else if (")}]".includes(letter) || (letter === ">" && text[index - 1] !== "=")) depth--;
    if (depth === 0 && sign.test(letter)) parts.push("");
    else parts[parts.length - 1] += letter;
  }
  return parts.filter((part) => part.trim() !== "");
}

/** Members of an interface's body: fields, and methods as fields that are functions. */
function membersOf(body) {
  const members = [];
  let comment = "";
  for (const part of splitAtTop(
    body.replace(/\/\*\*[\s\S]*?\*\//g, (text) => `\uE000${members.push(text) - 1};`),
    /;/,
  )) {
    const kept = /^\s*\uE000(\d+)$/.exec(part)?.[1];
    if (kept !== undefined) {
      comment = commentText(members[Number(kept)]).replaceAll("\n", " ");
      continue;
    }
    const [, name, mark, rest] = /^\s*(?:readonly )?(\w+)(\??)([\s\S]+)$/.exec(part) ?? [];
    if (name === undefined)
      throw new Error(`scripts/docs/options.mjs: ${part.trim()} is not a member that it can read.`);
    const type = rest.startsWith(":") ? rest.slice(1) : rest.replace(/\)\s*:\s*([^)]+)$/, ") => $1");
    members.push({ name, type: type.replace(/\s+/g, " ").trim(), isOptional: mark === "?", comment });
    comment = "";
  }
  return members.filter((member) => typeof member !== "string");
}

const DEFAULTS = [
  /\b(?:Where|If) absent: ([^.;]+)\.?/,
  /[;,.]?\s*\bDefaults?:? ((?:[^.;]|\.(?=\S))+)\.?/,
  /(?:^|[;,] |\. )((?:[^;.]|\.(?=\S))+?),? (?:where|if) absent\.?/,
  /(?:^|[;,.] )((?:[^;.]|\.(?=\S))+?) by default\.?/,
];

/**
 * The default that a comment names, and the comment without it.
 * @param {string} comment
 */
export function splitDefault(comment) {
  for (const pattern of DEFAULTS) {
    const match = pattern.exec(comment);
    if (match === null) continue;
    const before = comment
      .slice(0, match.index)
      .trimEnd()
      .replace(/[.;,]$/, "");
    const rest = `${before}. ${comment.slice(match.index + match[0].length).trim()}`;
    return {
      fallback: match[1].trim(),
      meaning: rest
        .replace(/\.\.? *$/, ".")
        .replace(/\.\. /, ". ")
        .replace(/^\. ?/, ""),
    };
  }
  return { fallback: "", meaning: comment };
}
