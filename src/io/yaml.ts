import { Lexer, type ParseOptions, parse, type SchemaOptions } from "yaml";

/** Levels by marks, and columns before a line, each of which may be a level: some 800 end the package's stack. */
const MOST_LEVELS = 64;
const MOST_COLUMNS = 256;
/** Some two thousand lines of words, marks and gaps. The package's time grows with their square. */
const MOST_LEXEMES = 2 ** 14;
const OPENING = ["[", "{"];
const CLOSING = ["]", "}"];
/** Marks of block lists and keys: each on a line is a level. */
const BLOCK = ["-", "?"];

// The parser calls itself for each level, which can end the process, and takes quadratic time for wrong texts.
/**
 * Reads YAML with few aliases, so that a small text cannot unfold into a huge value. Throws an error of the package, and
 * before it begins one for a text of more than 64 levels or 16,384 tokens: it calls itself for each level.
 */
export function readYaml(text: string, options: ParseOptions & SchemaOptions & { maxAliasCount: number }): unknown {
  let [lexemes, open, onLine] = [0, 0, 0];
  let isNewLine = true;
  for (const lexeme of new Lexer().lex(text)) {
    if (++lexemes > MOST_LEXEMES) throw new Error(`the text has more than ${MOST_LEXEMES} tokens`);
    if (OPENING.includes(lexeme)) open++;
    else if (CLOSING.includes(lexeme)) open--;
    else if (BLOCK.includes(lexeme)) onLine++;
    const isDeep = isNewLine && lexeme.length > MOST_COLUMNS && /^ +$/.test(lexeme);
    isNewLine = lexeme === "\n" || lexeme === "\r\n";
    if (isNewLine) onLine = 0;
    if (isDeep || open + onLine > MOST_LEVELS) throw new Error(`the text is nested deeper than ${MOST_LEVELS} levels`);
  }
  return parse(text, { logLevel: "error", ...options });
}
