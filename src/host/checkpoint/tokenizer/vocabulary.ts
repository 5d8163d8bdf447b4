import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { lazy } from "../../../base/lazy-packages.js";
import { TokenLines } from "./token-lines.js";

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

/** A byte-pair vocabulary: symbols of bytes, and merges of two tokens into one. */
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

  /** Id of the token that two neighbours are merged into, 0 where they are not. A lower id is merged first. */
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
  gunzipSync(readFileSync(new URL(`./${name}/merges.txt.gz`, import.meta.url)));

/** CLIP's vocabulary of 48,894 merges, read from its file by the first call. */
export const clipVocabulary = lazy(() => new Vocabulary(readMerges("clip-vocab"), { slotBits: 17, hasWordEnds: true }));

/** Qwen's vocabulary of 151,387 merges, read from its file by the first call. */
export const qwenVocabulary = lazy(
  () => new Vocabulary(readMerges("qwen-vocab"), { slotBits: 19, hasWordEnds: false }),
);
