import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { lazy } from "../../../base/lazy-packages.js";
import { TokenLines } from "./token-lines.js";

/** Ids of CLIP's start and end token, the last two of its vocabulary. */
export const START = 49406;
export const END = 49407;

/** Number of ids of single bytes; those of bytes that end a word follow them, then one id for each merge. */
export const BYTES = 256;
/** Bytes that the vocabulary numbers first, as ranges; the others follow. */
const FIRST_BYTES = [
  [33, 126],
  [161, 172],
  [174, 255],
] as const;
/** Code point that stands in the merges for the first of the other bytes. */
const OTHER_BYTES = 0x100;
const END_OF_WORD = "</w>";

/** Slots of the table of merges, a power of two; 37 % are in use. */
const SLOTS = 1 << 17;

/** CLIP's byte-pair vocabulary: symbols of bytes and 48,894 merges of two tokens into one. */
export class Vocabulary {
  /** Id of each byte inside a word; at its end it is 256 higher. */
  readonly byteIds = new Uint8Array(BYTES);
  // typed arrays: a Map of the same pairs takes ten times the memory
  readonly #pairs = new Uint32Array(SLOTS);
  readonly #merged = new Uint16Array(SLOTS);

  /** Reads merges, two tokens a line, the most important first. */
  constructor(merges: Uint8Array) {
    const symbols = this.#byteSymbols();
    const lines = new TokenLines(Buffer.concat([Buffer.from(`${symbols.join("\n")}\n`), merges]));
    lines.forEachPair((left, right, id) => this.#add(left, right, id));
  }

  /** Id of the token that two neighbours are merged into, 0 where they are not. A lower id is merged first. */
  merge(left: number, right: number): number {
    return this.#merged[this.#slot(pairOf(left, right))]!;
  }

  /** Numbers the bytes; returns the texts that stand for them in the merges, in the order of their ids. */
  #byteSymbols(): string[] {
    const isFirst = (byte: number) => FIRST_BYTES.some(([from, to]) => byte >= from && byte <= to);
    const bytes = Array.from({ length: BYTES }, (_, byte) => byte);
    const first = bytes.filter(isFirst);
    const others = bytes.filter((byte) => !isFirst(byte));
    for (const [id, byte] of [...first, ...others].entries()) this.byteIds[byte] = id;
    const codes = [...first, ...others.map((_, index) => OTHER_BYTES + index)];
    const symbols = codes.map((code) => String.fromCharCode(code));
    return [...symbols, ...symbols.map((symbol) => symbol + END_OF_WORD)];
  }

  #add(left: number, right: number, id: number): void {
    const pair = pairOf(left, right);
    const slot = this.#slot(pair);
    this.#pairs[slot] = pair;
    this.#merged[slot] = id;
  }

  /** Slot of a pair, or the free one where it would be: no merge has id 0. */
  #slot(pair: number): number {
    let slot = Math.imul(pair, 0x9e3779b1) >>> 15;
    while (this.#merged[slot] !== 0 && this.#pairs[slot] !== pair) slot = (slot + 1) & (SLOTS - 1);
    return slot;
  }
}

/** Both ids in 32 bits: each is below 2^16. */
const pairOf = (left: number, right: number): number => ((left << 16) | right) >>> 0;

/** CLIP's vocabulary, read from its file by the first call. */
export const clipVocabulary = lazy(
  () => new Vocabulary(gunzipSync(readFileSync(new URL("./clip-vocab/merges.txt.gz", import.meta.url)))),
);
