/** Names in a prefix that a node fills when it saves. */
const SAVING_NAMES = ["width", "height", "year", "month", "day", "hour", "minute", "second"] as const;
const DATE = "date:";
export type SavingName = (typeof SAVING_NAMES)[number];
const AT_SAVING: ReadonlySet<string> = new Set(SAVING_NAMES);
/** Letters of a date's parts, which stand alone or doubled. */
const PARTS: Readonly<Record<string, (date: Date) => number>> = {
  d: (date) => date.getDate(),
  M: (date) => date.getMonth() + 1,
  h: (date) => date.getHours(),
  m: (date) => date.getMinutes(),
  s: (date) => date.getSeconds(),
};

/**
 * Replaces what stands between percent signs, as ComfyUI's editor does. What `replace` returns nothing for stays, and its
 * second sign may begin a name.
 */
export function fillTexts(text: string, replace: (name: string) => string | undefined): string {
  let filled = "";
  for (let at = 0; at < text.length; ) {
    const start = text.indexOf("%", at);
    const end = start < 0 ? -1 : text.indexOf("%", start + 1);
    if (end < 0) return filled + text.slice(at);
    filled += text.slice(at, start);
    const name = text.slice(start + 1, end);
    const value = name === "" ? undefined : (replace(name) ?? (AT_SAVING.has(name) ? `%${name}%` : undefined));
    at = value === undefined ? end : end + 1;
    filled += value ?? text.slice(start, end);
  }
  return filled;
}

/** Local time for date:yyyy-MM-dd: d, M, h, m, s (with a zero in front where doubled), yy and yyyy; else undefined. */
export function dateOf(name: string, now: Date): string | undefined {
  if (!name.startsWith(DATE)) return undefined;
  const format = name.slice(DATE.length);
  const year = String(now.getFullYear());
  let text = "";
  for (let at = 0; at < format.length; ) {
    const letter = format[at]!;
    const longest = letter === "y" ? 4 : letter in PARTS ? 2 : 1;
    let length = 1;
    while (length < longest && format[at + length] === letter) length++;
    if (letter in PARTS) text += String(PARTS[letter]!(now)).padStart(length, "0");
    else if (letter === "y" && length % 2 === 0) text += year.slice(-length);
    else text += letter.repeat(length);
    at += length;
  }
  return text;
}

/** Forms that are meant as a date, or as a node and its widget. */
const MEANT_AS_TEXT = /^(?:date(?:\s*:.*)?|[^./\\]+(?:\.[^./\\]+)*\.[a-z_]\w*)$/i;

/** Texts of a prefix that look like a date or %Node.widget% but are no date, so that they would stay in the files' names. */
export function openTexts(prefix: string): Set<string> {
  const found = new Set<string>();
  fillTexts(prefix, (name) => {
    if (name.startsWith(DATE)) return "";
    if (MEANT_AS_TEXT.test(name.trim())) found.add(`%${name}%`);
    return undefined;
  });
  return found;
}
