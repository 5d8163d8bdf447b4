/**
 * Text of a prompt as the editor queues it: without comments, of each {a|b} one alternative. The editor draws that by
 * chance; here it is the first, so that one file is one picture. A backslash before a brace or bar keeps it.
 */
export function firstAlternatives(text: string): string {
  const source = withoutComments(text);
  let chosen = "";
  // for each open brace, whether its first alternative goes on
  const open: boolean[] = [];
  let skipped = 0;
  for (let at = 0; at < source.length; at++) {
    const character = source[at]!;
    if (character === "\\") {
      const next = source[++at] ?? "";
      if (skipped === 0) chosen += isMark(next) ? next : character + next;
    } else if (character === "{") {
      open.push(true);
    } else if (character === "}" && open.length > 0) {
      if (open.pop() === false) skipped--;
    } else if (character === "|" && open.length > 0) {
      if (open.at(-1)) skipped++;
      open[open.length - 1] = false;
    } else if (skipped === 0) {
      chosen += character;
    }
  }
  return chosen;
}

const isMark = (character: string): boolean => character === "{" || character === "}" || character === "|";

/** Removes what stands between the marks of a comment, and after two slashes to the end of the line. */
function withoutComments(text: string): string {
  let kept = "";
  for (let at = 0; ; ) {
    const start = text.indexOf("/", at);
    if (start < 0) return kept + text.slice(at);
    const mark = text[start + 1];
    const end = mark === "/" ? lineEnd(text, start) : mark === "*" ? blockEnd(text, start) : start + 1;
    kept += text.slice(at, mark === "/" || (mark === "*" && end > start + 1) ? start : end);
    at = end;
  }
}

function lineEnd(text: string, start: number): number {
  const end = text.indexOf("\n", start);
  return end < 0 ? text.length : end;
}

/** End of a block, or the next character where it is never closed. */
function blockEnd(text: string, start: number): number {
  const end = text.indexOf("*/", start + 2);
  return end < 0 ? start + 1 : end + 2;
}
