// Fields of options types in the compiler's declarations, inherited ones included.
import { findDeclaration, importsOf } from "./declarations.mjs";
import { commentText } from "./markdown.mjs";

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
    if (name === undefined) throw new Error(`scripts/docs/options.mjs: ${part.trim()} is no member that it reads.`);
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
    const rest = `${comment.slice(0, match.index).replace(/[;,]$/, "")}. ${comment.slice(match.index + match[0].length).trim()}`;
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
