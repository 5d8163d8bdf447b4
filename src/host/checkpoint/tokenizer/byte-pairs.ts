import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { lazy } from "../../../base/lazy.js";

/** Factor of an id in the heap's keys: below it is the position, so that equal pairs are merged from left to right. */
const ID = 2 ** 32;
const DEAD = -1;
/** UTF-8 bytes of a UTF-16 unit at most. */
const UTF8 = 3;

/** Merges the bytes of words to tokens. One object works on one word after the other, in the same memory. */
export class BytePairs {
  readonly #vocabulary: Vocabulary;
  readonly #encoder = new TextEncoder();
  readonly #heap = new Heap();
  #bytes = new Uint8Array();
  // a merged token stands at the position of its first byte; the others are dead
  #tokens = new Int32Array();
  #next = new Int32Array();
  #previous = new Int32Array();
  #length = 0;

  constructor(vocabulary: Vocabulary) {
    this.#vocabulary = vocabulary;
  }

  /**
   * Appends the ids of a word that is not empty: one symbol a byte, then the neighbours of the lowest merge become one
   * token until none can. Takes n log n steps for n bytes.
   */
  append(word: string, ids: number[]): void {
    this.#read(word);
    const heap = this.#heap;
    for (let position = 0; position < this.#length; position++) this.#consider(position);
    for (let key = heap.pop(); key !== undefined; key = heap.pop()) this.#merge(key % ID, Math.floor(key / ID));
    for (let position = 0; position < this.#length; position = this.#next[position]!) ids.push(this.#tokens[position]!);
  }

  #read(word: string): void {
    const most = word.length * UTF8;
    if (this.#bytes.length < most) {
      this.#bytes = new Uint8Array(2 * most);
      this.#tokens = new Int32Array(2 * most);
      this.#next = new Int32Array(2 * most);
      this.#previous = new Int32Array(2 * most);
    }
    this.#length = this.#encoder.encodeInto(word, this.#bytes).written;
    for (let position = 0; position < this.#length; position++) {
      this.#tokens[position] = this.#vocabulary.byteIds[this.#bytes[position]!]!;
      this.#next[position] = position + 1;
      this.#previous[position] = position - 1;
    }
    this.#tokens[this.#length - 1]! += this.#vocabulary.wordEnd;
  }

  /** Queues the merge of the token at a position with the one after it. */
  #consider(position: number): void {
    const merged = this.#mergeAt(position);
    if (merged !== 0) this.#heap.push(merged * ID + position);
  }

  #mergeAt(position: number): number {
    const next = this.#next[position]!;
    return next < this.#length ? this.#vocabulary.merge(this.#tokens[position]!, this.#tokens[next]!) : 0;
  }

  #merge(position: number, merged: number): void {
    // one of the two has been merged with another neighbour since
    if (this.#tokens[position] === DEAD || this.#mergeAt(position) !== merged) return;
    const right = this.#next[position]!;
    const after = this.#next[right]!;
    this.#tokens[position] = merged;
    this.#tokens[right] = DEAD;
    this.#next[position] = after;
    if (after < this.#length) this.#previous[after] = position;
    this.#consider(position);
    const before = this.#previous[position]!;
    if (before >= 0) this.#consider(before);
  }
}

/** A heap of numbers, the least first. */
class Heap {
  readonly #keys: number[] = [];

  push(key: number): void {
    const keys = this.#keys;
    let at = keys.length;
    keys.push(key);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (keys[parent]! <= key) break;
      keys[at] = keys[parent]!;
      at = parent;
    }
    keys[at] = key;
  }

  pop(): number | undefined {
    const keys = this.#keys;
    const [least] = keys;
    const last = keys.pop();
    if (last === undefined || keys.length === 0) return last;
    let at = 0;
    for (let child = 1; child < keys.length; child = 2 * at + 1) {
      if (child + 1 < keys.length && keys[child + 1]! < keys[child]!) child++;
      if (keys[child]! >= last) break;
      keys[at] = keys[child]!;
      at = child;
    }
    keys[at] = last;
    return least;
  }
}

/** Ids of CLIP's start and end token, the last two of its vocabulary. */
export const START = 49406;
export const END = 49407;

/** Number of ids of single bytes; those of bytes that end a word may follow them, then one id for each merge. */
const BYTES = 256;
/** Bytes that the vocabulary numbers first, as ranges; the others follow. */
const FIRST_BYTES = [
  [33, 126],
  [161, 172],
  [174, 255],
] as const;
/** Code point that stands in the merges for the first of the other bytes. */
const OTHER_BYTES = 0x100;
const END_OF_WORD = "</w>";

/** Ids of a pair are below this. */
const MOST_IDS = 2 ** 18;

export interface VocabularyOptions {
  /** The table of merges has 2^slotBits slots, at least twice the number of merges. */
  readonly slotBits: number;
  /** Whether bytes that end a word have ids of their own. */
  readonly hasWordEnds: boolean;
}

/** A byte-pair vocabulary: symbols of bytes, and merges of two tokens into one. @internal */
export class Vocabulary {
  /** Id of each byte inside a word. */
  readonly byteIds = new Uint8Array(BYTES);
  /** By how much the id of a byte that ends a word is higher. */
  readonly wordEnd: number;
  // typed arrays: a Map of the same pairs takes ten times the memory
  readonly #pairs: Float64Array;
  readonly #merged: Uint32Array;
  readonly #shift: number;

  /** Reads merges, two tokens a line, the most important first. */
  constructor(merges: Uint8Array, { slotBits, hasWordEnds }: VocabularyOptions) {
    this.wordEnd = hasWordEnds ? BYTES : 0;
    this.#pairs = new Float64Array(2 ** slotBits);
    this.#merged = new Uint32Array(2 ** slotBits);
    this.#shift = 32 - slotBits;
    const symbols = this.#byteSymbols();
    const all = hasWordEnds ? [...symbols, ...symbols.map((symbol) => symbol + END_OF_WORD)] : symbols;
    const lines = new TokenLines(Buffer.concat([Buffer.from(`${all.join("\n")}\n`), merges]), slotBits);
    lines.forEachPair((left, right, id) => this.#add(left, right, id));
  }

  /** Id of the token that two neighbours are merged into, 0 if they are not. A lower id is merged first. */
  merge(left: number, right: number): number {
    return this.#merged[this.#slot(left, right)]!;
  }

  /** Numbers the bytes; returns the texts that stand for them in the merges, in the order of their ids. */
  #byteSymbols(): string[] {
    const isFirst = (byte: number) => FIRST_BYTES.some(([from, to]) => byte >= from && byte <= to);
    const bytes = Array.from({ length: BYTES }, (_, byte) => byte);
    const first = bytes.filter(isFirst);
    const others = bytes.filter((byte) => !isFirst(byte));
    for (const [id, byte] of [...first, ...others].entries()) this.byteIds[byte] = id;
    const codes = [...first, ...others.map((_, index) => OTHER_BYTES + index)];
    return codes.map((code) => String.fromCharCode(code));
  }

  #add(left: number, right: number, id: number): void {
    const slot = this.#slot(left, right);
    this.#pairs[slot] = left * MOST_IDS + right;
    this.#merged[slot] = id;
  }

  /** Slot of a pair, or the free one where it would be: no merge has id 0. */
  #slot(left: number, right: number): number {
    const pair = left * MOST_IDS + right;
    let slot = Math.imul(Math.imul(left, 0x85ebca6b) ^ right, 0x9e3779b1) >>> this.#shift;
    while (this.#merged[slot] !== 0 && this.#pairs[slot] !== pair) slot = (slot + 1) & (this.#merged.length - 1);
    return slot;
  }
}

const readMerges = (name: string): Uint8Array =>
  gunzipSync(readFileSync(new URL(`.//${name}/merges.txt.gz`, import.meta.url)));

/** CLIP's vocabulary of 48,894 merges, read from its file by the first call. */
export const clipVocabulary = lazy(() => new Vocabulary(readMerges("clip-vocab"), { slotBits: 17, hasWordEnds: true }));

/** Qwen's vocabulary of 151,387 merges, read from its file by the first call. */
export const qwenVocabulary = lazy(
  () => new Vocabulary(readMerges("qwen-vocab"), { slotBits: 19, hasWordEnds: false }),
);

const SPACE = 0x20;
const LINE_END = 0x0a;
/**
 * Lines of one token, or of two that earlier lines have made; each makes a token whose id is its number. Looks tokens up
 * by their bytes: strings would take twice as long.
 */
class TokenLines {
  readonly #bytes: Uint8Array;
  /** First byte of each line, and the one after the last line. */
  readonly #starts: number[] = [0];
  /** Id of the token in each slot plus 1, 0 if it is free. */
  readonly #slots: Int32Array;
  readonly #shift: number;

  /** The table has 2^slotBits slots, at least twice the number of lines. */
  constructor(bytes: Uint8Array, slotBits: number) {
    this.#bytes = bytes;
    this.#slots = new Int32Array(2 ** slotBits);
    this.#shift = 32 - slotBits;
  }

  /** Calls back for each line of two tokens, with their ids and its own. */
  forEachPair(callback: (left: number, right: number, id: number) => void): void {
    const bytes = this.#bytes;
    let start = 0;
    let space = -1;
    for (let at = 0; at < bytes.length; at++) {
      if (bytes[at] === SPACE) space = at;
      if (bytes[at] !== LINE_END) continue;
      const id = this.#starts.length - 1;
      this.#starts.push(at + 1);
      if (space >= start) callback(this.#find(start, space), this.#find(space + 1, at), id);
      this.#slots[this.#slot(start, at)] = id + 1;
      start = at + 1;
    }
  }

  #find(from: number, to: number): number {
    return this.#slots[this.#slot(from, to)]! - 1;
  }

  /** Slot of the token of these bytes, or the free one where it would be. */
  #slot(from: number, to: number): number {
    const bytes = this.#bytes;
    let hash = 0x811c9dc5;
    for (let at = from; at < to; at++) {
      if (bytes[at] !== SPACE) hash = Math.imul(hash ^ bytes[at]!, 0x01000193);
    }
    let slot = Math.imul(hash, 0x9e3779b1) >>> this.#shift;
    for (let id = this.#slots[slot]!; id !== 0; id = this.#slots[slot]!) {
      if (this.#isLine(id - 1, from, to)) break;
      slot = (slot + 1) & (this.#slots.length - 1);
    }
    return slot;
  }

  /** Whether a line has these bytes, apart from its space. */
  #isLine(id: number, from: number, to: number): boolean {
    const bytes = this.#bytes;
    const end = this.#starts[id + 1]! - 1;
    let at = this.#starts[id]!;
    for (let other = from; other < to; other++, at++) {
      if (bytes[at] === SPACE) at++;
      if (bytes[at] !== bytes[other]) return false;
    }
    return at === end;
  }
}
