import type { Segment } from "./parse.js";

/** Factor of a round bracket for the weight of its content; a square bracket divides by it. */
const EMPHASIS = 1.1;

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
        append(parts.at(-1)!, piece, weight);
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

function append(segments: Segment[], text: string, weight: number): void {
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
      const event = { kind: "open" as const, square: isSquare, factor: isSquare ? 1 / EMPHASIS : EMPHASIS };
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
