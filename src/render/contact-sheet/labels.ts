import { describe } from "../../base/errors.js";
import { NumberLiteral } from "../../io/json/lossless.js";
import type { ItemValues } from "../items/item.js";

/** Longer values are cut; no line is that wide. */
const MAX_VALUE_CHARACTERS = 200;

/** Finds the values of a batch's items that vary, as far as it has gone. */
export class Varying {
  private readonly first = new Map<string, string>();
  private readonly keys = new Set<string>();

  add(values: ItemValues): void {
    for (const [key, value] of Object.entries(values)) {
      const text = inWords(value);
      const first = this.first.get(key);
      if (first === undefined) this.first.set(key, text);
      else if (first !== text) this.keys.add(key);
    }
  }

  /** The values of an item that vary, as "steps 20"; seeds that are the same in several nodes are one. */
  of(values: ItemValues): string[] {
    const varying = Object.entries(values)
      .filter(([key]) => this.keys.has(key))
      .map(([key, value]) => ({ key, name: key.slice(key.lastIndexOf(".") + 1), text: inWords(value) }));
    const isShort = ({ name, text }: { name: string; text: string }) =>
      varying.every((other) => other.name !== name || other.text === text);
    return [...new Set(varying.map((value) => `${isShort(value) ? value.name : value.key} ${value.text}`))];
  }
}

/** A value on one line, cut where it is long. */
export function inWords(value: unknown): string {
  const text =
    value instanceof NumberLiteral ? value.text : typeof value === "object" ? describe(value) : String(value);
  return text.slice(0, MAX_VALUE_CHARACTERS).replace(/\s+/g, " ");
}

/** Puts parts into at most so many lines of so many characters; what does not fit is cut and ends with "…". */
export function wrap(parts: readonly string[], characters: number, lines: number): string[] {
  const all: string[] = [];
  for (const part of parts) {
    const last = all.at(-1);
    const joined = last === undefined ? part : `${last}  ${part}`;
    if (last !== undefined && [...joined].length <= characters) all[all.length - 1] = joined;
    else all.push(cut(part, characters));
  }
  if (all.length <= lines) return all;
  const visible = all.slice(0, lines);
  visible[lines - 1] = cut(`${visible[lines - 1]!.replace(/…$/, "")} …`, characters);
  return visible;
}

/**
 * Breaks a text between words, and words that are longer than a line within, into at most so many lines; what does not
 * fit is cut and ends with "…".
 */
export function wrapText(text: string, characters: number, lines: number): string[] {
  const width = Math.max(1, characters);
  const all = [""];
  for (const word of text.split(" ")) {
    const joined = all.at(-1) === "" ? word : `${all.at(-1)} ${word}`;
    if ([...joined].length <= width) {
      all[all.length - 1] = joined;
      continue;
    }
    let rest = [...word];
    if (all.at(-1) !== "") all.push("");
    for (; rest.length > width; rest = rest.slice(width)) all.splice(-1, 1, rest.slice(0, width).join(""), "");
    all[all.length - 1] = rest.join("");
  }
  if (all.length <= lines) return all;
  const visible = all.slice(0, lines);
  visible[lines - 1] = cut(`${visible[lines - 1]} …`, width);
  return visible;
}

export function cut(text: string, characters: number): string {
  const all = [...text];
  if (all.length <= characters) return text;
  return `${all
    .slice(0, Math.max(0, characters - 1))
    .join("")
    .trimEnd()}…`;
}
