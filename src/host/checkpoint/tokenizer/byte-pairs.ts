import type { Vocabulary } from "./vocabulary.js";

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
