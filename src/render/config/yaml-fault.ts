import { YAMLParseError } from "yaml";

/** The faults of YAML that people write, by the package's codes for them. */
const FAULTS: Readonly<Record<string, string>> = {
  BAD_ALIAS: "a text begins with * or &, which means an alias: put it in quotes",
  BAD_DQ_ESCAPE: "a text in double quotes has a wrong escape: put it in single quotes",
  BAD_INDENT: "the line is indented like none above it",
  BAD_SCALAR_START: "a text begins with a sign that YAML reserves: put it in quotes",
  BLOCK_AS_IMPLICIT_KEY: "a line has two keys, or a text with a colon: put the text in quotes",
  DUPLICATE_KEY: "the key is not unique, it comes twice",
  MISSING_CHAR: "a quote, a bracket, a comma or the blank after a colon is missing",
  MULTILINE_IMPLICIT_KEY: "a key has no colon and blank after it, or its text no quotes",
  MULTIPLE_DOCS: "another document begins: expected one",
  TAB_AS_INDENT: "the line is indented with a tab: expected blanks",
  TAG_RESOLVE_FAILED: "a text begins with !, which means a tag: put it in quotes",
};

/** Where a file is no YAML and why, as the end of a sentence about it. Nothing of the file is quoted: it may be a token. */
export function yamlFault(error: unknown): string {
  if (error instanceof YAMLParseError) {
    const where = error.linePos === undefined ? "" : ` line ${error.linePos[0].line}`;
    // of a list or object that is never closed, the package says that it is indented wrongly
    const code =
      error.code === "BAD_INDENT" && /and end with a [\]}]/.test(error.message) ? "MISSING_CHAR" : error.code;
    return `${where}: ${FAULTS[code] ?? "expected YAML or JSON, received another text"}`;
  }
  const { message } = error as Error;
  // the package throws errors of its own kind for aliases alone
  return message.startsWith("expected ") ? `: ${message}` : `: ${FAULTS.BAD_ALIAS}`;
}
