/** A regular expression as a TypeScript or JavaScript source writes it. */
export interface RegExpLiteral {
  readonly source: string;
  readonly flags: string;
  readonly line: number;
}

/** Words after which a slash begins a regular expression, though a slash after a name divides. */
const WORDS_BEFORE_VALUES = new Set([
  "return",
  "typeof",
  "case",
  "in",
  "of",
  "do",
  "else",
  "void",
  "delete",
  "await",
  "yield",
]);

const ENDS_VALUE = /^[\w$)\]}]/;

/** All regular-expression literals of a source text; strings, templates and comments are passed over. */
export function regExpLiterals(text: string): RegExpLiteral[] {
  const literals: RegExpLiteral[] = [];
  // for each template that is open: the braces open inside its current ${…}
  const templates: number[] = [];
  let at = text.startsWith("#!") ? endOf(text, "\n", 0) : 0;
  let before = "";
  const skipTemplate = (): void => {
    for (; at < text.length; at++) {
      if (text[at] === "\\") at++;
      else if (text[at] === "`") break;
      else if (text[at] === "$" && text[at + 1] === "{") {
        templates.push(0);
        at++;
        before = "{";
        break;
      }
    }
    if (text[at] === "`") before = ")";
    at++;
  };
  while (at < text.length) {
    const char = text[at]!;
    if (/\s/.test(char)) at++;
    else if (text.startsWith("//", at)) at = endOf(text, "\n", at);
    else if (text.startsWith("/*", at)) at = endOf(text, "*/", at + 2);
    else if (char === '"' || char === "'") {
      for (at++; at < text.length && text[at] !== char; at++) if (text[at] === "\\") at++;
      at++;
      before = ")";
    } else if (char === "`") {
      at++;
      skipTemplate();
    } else if (char === "}" && templates.at(-1) === 0) {
      templates.pop();
      at++;
      skipTemplate();
    } else if (char === "/" && !ENDS_VALUE.test(before)) {
      const literal = readLiteral(text, at);
      literals.push({ ...literal, line: text.slice(0, at).split("\n").length });
      at += literal.source.length + literal.flags.length + 2;
      before = ")";
    } else if (/[\w$]/.test(char)) {
      const start = at;
      while (at < text.length && /[\w$]/.test(text[at]!)) at++;
      const word = text.slice(start, at);
      before = WORDS_BEFORE_VALUES.has(word) ? "(" : word;
    } else {
      const open = templates.length - 1;
      if (char === "{" && open >= 0) templates[open]!++;
      if (char === "}" && open >= 0) templates[open]!--;
      // what asserts that a value is there leaves it a value
      if (char !== "!" || !ENDS_VALUE.test(before)) before = char;
      at++;
    }
  }
  return literals;
}

function readLiteral(text: string, start: number): { source: string; flags: string } {
  let at = start + 1;
  for (let isClass = false; text[at] !== "/" || isClass; at++) {
    if (at >= text.length || text[at] === "\n") throw new Error(`A slash at offset ${start} begins no expression.`);
    if (text[at] === "\\") at++;
    else if (text[at] === "[") isClass = true;
    else if (text[at] === "]") isClass = false;
  }
  const flags = /^[a-z]*/.exec(text.slice(at + 1, at + 20))![0];
  return { source: text.slice(start + 1, at), flags };
}

function endOf(text: string, mark: string, from: number): number {
  const end = text.indexOf(mark, from);
  return end === -1 ? text.length : end + mark.length;
}
