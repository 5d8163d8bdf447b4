import { asciiDigits } from "../../io/python-text.js";
import { requireText } from "./options.js";

/** A piece of prompt text and the weight of all its tokens. */
export type Segment = [text: string, weight: number];

/** Factor of a parenthesis without a number. */
const EMPHASIS = 1.1;

/** A part of the text still to be read; deeper groups are pushed on top, so no depth can exhaust the call stack. */
interface Range {
  at: number;
  end: number;
  weight: number;
}

/**
 * Splits a prompt into segments of equal weight: "(x)" multiplies by 1.1, "(x:1.2)" sets the weight, "\(" and "\)" are
 * text, and so are unmatched parentheses. Linear in the length of the text at any depth.
 */
export function parsePrompt(text: string): Segment[] {
  requireText(text);
  const { closes, lastColon, lastParenthesis } = scan(text);
  const segments: Segment[] = [];
  const pending: Range[] = [{ at: 0, end: text.length, weight: 1 }];

  /** Reads the inside of a group: a number after its last colon, at its own level, is the weight. */
  const enter = (start: number, end: number, outer: number): void => {
    const colon = lastColon[end - 1] ?? -1;
    const isOwn = end > start && colon > start && (lastParenthesis[end - 1] ?? -1) < colon;
    const explicit = isOwn ? pythonFloat(text.slice(colon + 1, end)) : undefined;
    if (explicit === undefined) pending.push({ at: start, end, weight: outer * EMPHASIS });
    else pending.push({ at: start, end: colon, weight: explicit });
  };

  for (let range = pending.at(-1); range !== undefined; range = pending.at(-1)) {
    const { at, end, weight } = range;
    if (at >= end) {
      pending.pop();
      continue;
    }
    let open = at;
    while (open < end && closes[open] === 0) open++;
    if (open > at) segments.push([unescapeParentheses(text.slice(at, open)), weight]);
    range.at = end;
    if (open === end) continue;
    const close = closes[open]!;
    if (close > 0 && close < end) {
      range.at = close + 1;
      enter(open + 1, close, weight);
    } else if (text[end - 1] === ")" && text[end - 2] !== "\\") {
      // the reference reads "((a)" as one group, because it begins and ends with a parenthesis
      enter(open + 1, end - 1, weight);
    } else {
      segments.push([unescapeParentheses(text.slice(open, end)), weight]);
    }
  }
  return segments;
}

/**
 * Finds for each character the position where its group closes (-1: never; 0: it opens none), and those of the last colon and the last unescaped
 * parenthesis up to it. An unmatched ")" turns the next "(" into text, as in the reference.
 */
function scan(text: string): { closes: Int32Array; lastColon: Int32Array; lastParenthesis: Int32Array } {
  const closes = new Int32Array(text.length);
  const lastColon = new Int32Array(text.length);
  const lastParenthesis = new Int32Array(text.length);
  const open: number[] = [];
  let surplus = 0;
  let colon = -1;
  let parenthesis = -1;
  for (let i = 0; i < text.length; i++) {
    const character = text[i];
    const isEscaped = i > 0 && text[i - 1] === "\\";
    if (character === ":") colon = i;
    if ((character === "(" || character === ")") && !isEscaped) {
      parenthesis = i;
      if (character === ")") {
        const start = open.pop();
        if (start === undefined) surplus++;
        else closes[start] = i;
      } else if (surplus > 0) {
        surplus--;
      } else {
        open.push(i);
      }
    }
    lastColon[i] = colon;
    lastParenthesis[i] = parenthesis;
  }
  for (const start of open) closes[start] = -1;
  return { closes, lastColon, lastParenthesis };
}

function unescapeParentheses(text: string): string {
  return text.replaceAll("\\)", ")").replaceAll("\\(", "(");
}

/** Factor of a round bracket for the weight of its content; a square bracket divides by it. */
const A1111_EMPHASIS = 1.1;

/** Weight at the end of a round bracket: ":1.2)". */
const CLOSING_WEIGHT = /:\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+))\s*\)/y;
const BREAK = /\bBREAK\b/;
const ESCAPABLE = "()[]\\";

/** A piece of plain text or a bracket. */
type Event =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "open"; readonly square: boolean; factor: number }
  | { readonly kind: "close"; readonly square: boolean };

/**
 * Splits a prompt as the A1111 web UI does: "(x)" multiplies the weight by 1.1, "[x]" divides by it, "(x:1.2)"
 * multiplies by 1.2, a backslash before a bracket or backslash makes it text; a bracket left open acts to the end.
 * Neighbours of equal weight are one segment. The word BREAK begins a new part; weights continue.
 * Linear in the length of the text at any depth.
 */
export function parseA1111(text: string): Segment[][] {
  const parts: Segment[][] = [[]];
  // the two kinds of brackets need not nest in each other
  const round = [1];
  const square = [1];
  for (const event of readEvents(text)) {
    if (event.kind === "text") {
      const weight = round.at(-1)! * square.at(-1)!;
      for (const [i, piece] of event.text.split(BREAK).entries()) {
        if (i > 0) parts.push([]);
        appendSegment(parts.at(-1)!, piece, weight);
      }
      continue;
    }
    const stack = event.square ? square : round;
    if (event.kind === "open") stack.push(stack.at(-1)! * event.factor);
    else stack.pop();
  }
  const spoken = parts.filter((segments) => segments.some(([piece]) => piece.trim() !== ""));
  return spoken.length === 0 ? [[]] : spoken;
}

function appendSegment(segments: Segment[], text: string, weight: number): void {
  const last = segments.at(-1);
  if (last !== undefined && last[1] === weight) last[0] += text;
  else if (text !== "") segments.push([text, weight]);
}

function readEvents(text: string): Event[] {
  const events: Event[] = [];
  const open: { round: (Event & { kind: "open" })[]; square: (Event & { kind: "open" })[] } = { round: [], square: [] };
  let plain = "";
  const add = (event: Event): void => {
    if (plain !== "") events.push({ kind: "text", text: plain });
    plain = "";
    events.push(event);
  };
  for (let i = 0; i < text.length; i++) {
    const character = text[i]!;
    if (character === "\\") {
      // a backslash before anything else is dropped, as in the web UI
      if (i + 1 < text.length && ESCAPABLE.includes(text[i + 1]!)) plain += text[++i]!;
    } else if (character === "(" || character === "[") {
      const isSquare = character === "[";
      const event = { kind: "open" as const, square: isSquare, factor: isSquare ? 1 / A1111_EMPHASIS : A1111_EMPHASIS };
      open[isSquare ? "square" : "round"].push(event);
      add(event);
    } else if (character === ")" && open.round.length > 0) {
      open.round.pop();
      add({ kind: "close", square: false });
    } else if (character === "]" && open.square.length > 0) {
      open.square.pop();
      add({ kind: "close", square: true });
    } else if (character === ":" && open.round.length > 0) {
      CLOSING_WEIGHT.lastIndex = i;
      const weight = CLOSING_WEIGHT.exec(text);
      if (weight === null) {
        plain += character;
        continue;
      }
      open.round.pop()!.factor = Number(weight[1]);
      add({ kind: "close", square: false });
      i += weight[0].length - 1;
    } else {
      plain += character;
    }
  }
  if (plain !== "") events.push({ kind: "text", text: plain });
  return events;
}

const DECIMAL = /^[+-]?(?:\d+(?:_\d+)*(?:\.(?:\d+(?:_\d+)*)?)?|\.\d+(?:_\d+)*)(?:[eE][+-]?\d+(?:_\d+)*)?$/;
const SPECIAL = /^([+-]?)(inf|infinity|nan)$/i;

/** Reads a number as Python's float() does (" 2 ", "1_0", "nan", ".5", "1e-1", digits of any script); undefined if it is none. */
export function pythonFloat(text: string): number | undefined {
  const trimmed = asciiDigits(text.trim());
  if (DECIMAL.test(trimmed)) return Number(trimmed.replaceAll("_", ""));
  const special = SPECIAL.exec(trimmed);
  if (special === null) return undefined;
  if (special[2]?.toLowerCase() === "nan") return Number.NaN;
  return special[1] === "-" ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
}
