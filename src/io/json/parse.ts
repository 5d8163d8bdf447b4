import { LatentkitError } from "../../base/errors.js";
import { HOSTILE_KEYS, MAX_DEPTH, NumberLiteral, rememberOrder } from "./values.js";

/** Python's limit for an integer; longer ones cost quadratic time. */
const MAX_NUMBER_LENGTH = 4300;

export interface ParseOptions {
  /** Deepest nesting of lists and objects, at most 256. */
  maxDepth?: number;
  /** Reads NaN, Infinity and -Infinity, as Python writes them. */
  nonFinite?: boolean;
  /** Name of the text in messages; default: "JSON". */
  what?: string;
  /** Number of the first line in messages; default: 1. */
  line?: number;
}

/**
 * Reads JSON and keeps every digit: safe integers and floats that print back identically are numbers, integers
 * beyond 2^53 bigints, all else NumberLiterals. Duplicate and prototype keys and deep nesting are refused.
 * Throws `graph.invalid-json` with line and column.
 */
export function parseJson(text: string, options: ParseOptions = {}): unknown {
  return new Parser(text, Math.min(options.maxDepth ?? MAX_DEPTH, MAX_DEPTH), options).document();
}

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids them inside strings
const PLAIN_TEXT = /[^"\\\u0000-\u001f]*/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids them inside strings
const ESCAPED_OR_CONTROL = /[\\\u0000-\u001f]/;
const [ZERO, NINE] = [0x30, 0x39];
/** Digits that any safe integer has at least. */
const SAFE_DIGITS = 15;
/** Units that follow the digits of a number that is not an integer. */
const FRACTION: ReadonlySet<number> = new Set([0x2e, 0x45, 0x65]);
/** By their first letters: a large header has no word but thousands of numbers. */
const WORDS: ReadonlyMap<string | undefined, readonly [word: string, value: unknown]> = new Map([
  ["t", ["true", true]],
  ["f", ["false", false]],
  ["n", ["null", null]],
]);
const NON_FINITE: Readonly<Record<string, number>> = {
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  "-Infinity": Number.NEGATIVE_INFINITY,
};
const ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  "\\": "\\",
  "/": "/",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
};

class Parser {
  #at: number;
  readonly #text: string;
  readonly #maxDepth: number;
  readonly #options: ParseOptions;

  constructor(text: string, maxDepth: number, options: ParseOptions) {
    this.#text = text;
    this.#maxDepth = maxDepth;
    this.#options = options;
    this.#at = text.charCodeAt(0) === 0xfeff ? 1 : 0;
  }

  document(): unknown {
    this.#space();
    const value = this.#value(0);
    this.#space();
    if (this.#at < this.#text.length) throw this.#unexpected("the end of the text");
    return value;
  }

  #value(depth: number): unknown {
    const char = this.#text[this.#at];
    if (char === '"') return this.#string();
    const integer = this.#shortInteger();
    if (integer !== undefined) return integer;
    if (char === "{" || char === "[") {
      if (depth >= this.#maxDepth) throw this.#failure(`nesting is deeper than ${this.#maxDepth} levels`);
      return char === "{" ? this.#object(depth) : this.#list(depth);
    }
    for (const word of this.#options.nonFinite ? Object.keys(NON_FINITE) : []) {
      if (this.#takes(word)) return NON_FINITE[word];
    }
    const word = WORDS.get(char);
    if (word !== undefined && this.#takes(word[0])) return word[1];
    return this.#number();
  }

  #object(depth: number): Record<string, unknown> {
    const object: Record<string, unknown> = {};
    const keys: string[] = [];
    this.#at++;
    this.#space();
    if (this.#takes("}")) return object;
    for (;;) {
      if (this.#text[this.#at] !== '"') throw this.#unexpected("a key in double quotes");
      const start = this.#at;
      const key = this.#string();
      if (HOSTILE_KEYS.has(key) || Object.hasOwn(object, key)) {
        this.#at = start;
        const quoted = JSON.stringify(key);
        throw this.#failure(HOSTILE_KEYS.has(key) ? `the key ${quoted} is not allowed` : `duplicate key ${quoted}`);
      }
      this.#space();
      if (!this.#takes(":")) throw this.#unexpected('":"');
      this.#space();
      object[key] = this.#value(depth + 1);
      keys.push(key);
      this.#space();
      if (this.#takes("}")) break;
      if (!this.#takes(",")) throw this.#unexpected('"," or "}"');
      this.#space();
    }
    rememberOrder(object, keys);
    return object;
  }

  #list(depth: number): unknown[] {
    const list: unknown[] = [];
    this.#at++;
    this.#space();
    if (this.#takes("]")) return list;
    for (;;) {
      list.push(this.#value(depth + 1));
      this.#space();
      if (this.#takes("]")) return list;
      if (!this.#takes(",")) throw this.#unexpected('"," or "]"');
      this.#space();
    }
  }

  #string(): string {
    const end = this.#text.indexOf('"', this.#at + 1);
    const plain = this.#text.slice(this.#at + 1, Math.max(end, this.#at + 1));
    if (end > 0 && !ESCAPED_OR_CONTROL.test(plain)) {
      this.#at = end + 1;
      return plain;
    }
    const start = this.#at++;
    let value = this.#skip(PLAIN_TEXT);
    if (this.#takes('"')) return value;
    const whole = this.#escapedString(start);
    if (whole !== undefined) return whole;
    for (;;) {
      value += this.#skip(PLAIN_TEXT);
      if (this.#takes('"')) return value;
      if (!this.#takes("\\")) throw this.#unexpected("a closing quote (control characters must be escaped)");
      const letter = this.#text[this.#at] ?? "";
      const hex = /^u([0-9a-fA-F]{4})/.exec(this.#text.slice(this.#at, this.#at + 5));
      if (hex === null && ESCAPES[letter] === undefined) throw this.#unexpected("a valid JSON escape");
      value += hex === null ? ESCAPES[letter] : String.fromCharCode(Number.parseInt(hex[1]!, 16));
      this.#at += hex === null ? 1 : 5;
    }
  }

  /** A text with escapes, read by V8 in a hundredth of the time; undefined for a wrong one, whose fault is searched for. */
  #escapedString(start: number): string | undefined {
    let end = this.#text.indexOf('"', start + 1);
    while (end > 0 && isEscaped(this.#text, end, "\\")) end = this.#text.indexOf('"', end + 1);
    if (end < 0) return undefined;
    try {
      const value = JSON.parse(this.#text.slice(start, end + 1)) as string;
      this.#at = end + 1;
      return value;
    } catch {
      return undefined;
    }
  }

  /** A whole number of few digits, as most numbers of a graph are; undefined for anything else. */
  #shortInteger(): number | undefined {
    let at = this.#at;
    let value = 0;
    for (let unit = this.#text.charCodeAt(at); unit >= ZERO && unit <= NINE; unit = this.#text.charCodeAt(++at)) {
      value = value * 10 + unit - ZERO;
    }
    const digits = at - this.#at;
    const isShort = digits > 0 && digits <= SAFE_DIGITS && (digits === 1 || this.#text.charCodeAt(this.#at) !== ZERO);
    if (!isShort || FRACTION.has(this.#text.charCodeAt(at))) return undefined;
    this.#at = at;
    return value;
  }

  #number(): number | bigint | NumberLiteral {
    const digits = this.#skip(NUMBER);
    if (digits === "") throw this.#noValue();
    if (digits.length > MAX_NUMBER_LENGTH) throw this.#failure(`a number has more than ${MAX_NUMBER_LENGTH} digits`);
    const value = Number(digits);
    if (/^-?[0-9]+$/.test(digits) && !Number.isSafeInteger(value)) return BigInt(digits);
    return String(value) === digits ? value : new NumberLiteral(digits);
  }

  /** Skips what the sticky pattern matches here and returns it. */
  #skip(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text)?.[0] ?? "";
    this.#at += match.length;
    return match;
  }

  #space(): void {
    for (;;) {
      const unit = this.#text.charCodeAt(this.#at);
      if (unit !== 0x20 && unit !== 0x0a && unit !== 0x0d && unit !== 0x09) return;
      this.#at++;
    }
  }

  #takes(word: string): boolean {
    if (!this.#text.startsWith(word, this.#at)) return false;
    this.#at += word.length;
    return true;
  }

  #unexpected(expected: string): LatentkitError {
    const received = this.#at < this.#text.length ? JSON.stringify(this.#text[this.#at]) : "the end of the text";
    return this.#failure(`expected ${expected}, received ${received}`);
  }

  #noValue(): LatentkitError {
    const word = Object.keys(NON_FINITE).find((word) => this.#text.startsWith(word, this.#at));
    return word === undefined ? this.#unexpected("a value") : this.#failure(`expected a value, received ${word}`);
  }

  #failure(reason: string): LatentkitError {
    let line = this.#options.line ?? 1;
    let start = 0;
    // an array of lines would be larger than the text
    for (let end = this.#text.indexOf("\n"); end >= 0 && end < this.#at; end = this.#text.indexOf("\n", start)) {
      start = end + 1;
      line++;
    }
    const position = `line ${line}, column ${this.#at - start + 1}`;
    return new LatentkitError("graph.invalid-json", `${this.#options.what ?? "JSON"}, ${position}: ${reason}.`);
  }
}

/** Whether an odd number of backslashes is before a character. */
export function isEscaped<Unit>(text: ArrayLike<Unit>, at: number, backslash: Unit): boolean {
  let first = at;
  while (text[first - 1] === backslash) first--;
  return (at - first) % 2 === 1;
}
