import { NumberLiteral } from "../../io/json/lossless.js";

/** Looks up a widget of a node by the node's name and its own; undefined where there is none. */
export type WidgetLookup = (node: string, widget: string) => unknown;

/** Characters that file systems refuse, or read as folders. */
const UNSAFE = new Set('/?<>\\:*|"');
const DATE = "date:";
/** Letters of a date's parts, which stand alone or doubled. */
const PARTS: Readonly<Record<string, (date: Date) => number>> = {
  d: (date) => date.getDate(),
  M: (date) => date.getMonth() + 1,
  h: (date) => date.getHours(),
  m: (date) => date.getMinutes(),
  s: (date) => date.getSeconds(),
};

/**
 * Fills a prefix of file names as the editor does before it queues a graph: %date:yyyy-MM-dd% with the local time,
 * %KSampler.seed% with the value of a widget. Anything else between percent signs stays.
 */
export function filledPrefix(text: string, lookup: WidgetLookup, now: Date): string {
  let filled = "";
  for (let at = 0; at < text.length; ) {
    const start = text.indexOf("%", at);
    const end = start < 0 ? -1 : text.indexOf("%", start + 1);
    if (end < 0) return filled + text.slice(at);
    filled += text.slice(at, start);
    // of two signs with nothing between, the second may begin a name
    at = end === start + 1 ? end : end + 1;
    filled += (at > end && replacement(text.slice(start + 1, end), lookup, now)) || text.slice(start, at);
  }
  return filled;
}

function replacement(name: string, lookup: WidgetLookup, now: Date): string | undefined {
  if (name.startsWith(DATE)) return dateText(name.slice(DATE.length), now);
  const [node, widget, more] = name.split(".", 3);
  if (widget === undefined || more !== undefined) return undefined;
  const value = lookup(node!, widget);
  return value === undefined ? undefined : safe(value instanceof NumberLiteral ? Number(value.text) : value);
}

const safe = (value: unknown): string =>
  [...String(value ?? "")]
    .map((character) => (UNSAFE.has(character) || isControl(character) ? "_" : character))
    .join("");

const isControl = (character: string): boolean => character < " " || character === "\x7f";

/** Fills d, M, h, m, s (with a zero in front where doubled), yy and yyyy. */
function dateText(format: string, now: Date): string {
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
