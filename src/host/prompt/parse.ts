import { requireText } from "./options.js";
import { pythonFloat } from "./python-float.js";

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
