import { readFileSync } from "node:fs";
import { brotliDecompressSync } from "node:zlib";
import { lazy } from "../../../base/lazy.js";
import { parsePrompt } from "../../prompt/parse.js";
import { withoutEmbeddings } from "../../prompt/tokenize.js";

/** The tokens of a prompt, each with its weight. */
export interface T5Tokens {
  readonly ids: readonly number[];
  readonly weights: readonly number[];
}

/** Lengths of a prompt with padding, in tokens. */
export interface T5Lengths {
  /** Fewest tokens in all. */
  readonly fewest: number;
  /** Fewest tokens of padding. */
  readonly padding?: number;
}

/** Tokens of a prompt with weights, its end, and padding: each segment is split by itself, without its embeddings. */
export function t5Tokens(text: string, { fewest, padding = 0 }: T5Lengths): T5Tokens {
  const ids: number[] = [];
  const weights: number[] = [];
  for (const [segment, weight] of parsePrompt(text))
    for (const id of tokenizeT5(withoutEmbeddings(segment))) {
      ids.push(id);
      weights.push(weight);
    }
  ids.push(T5_END);
  const length = Math.max(fewest, ids.length + padding);
  while (ids.length < length) ids.push(T5_PAD);
  while (weights.length < ids.length) weights.push(1);
  return { ids, weights };
}

/** Ids of the tokens that fill and end a text. */
export const T5_PAD = 0;
export const T5_END = 1;
const UNKNOWN = 2;
/** Ids after those of the file, from `<extra_id_99>` down to `<extra_id_0>`. */
const EXTRA = 100;
const LITERALS = /(<pad>|<\/s>|<unk>|<extra_id_(?:0|[1-9]\d?)>)/;
/** Stands for the space in front of a word. */
const SPACE = "\u2581";
/** The only white space beside spaces that the map of characters leaves. */
const NEXT_LINE = "\u0085";

const t5Vocabulary = lazy(() => {
  const read = (name: string): Buffer =>
    brotliDecompressSync(readFileSync(new URL(`./t5-vocab/${name}.br`, import.meta.url)));
  const pieces = read("pieces.txt").toString().trimEnd().split("\n");
  for (let index = EXTRA - 1; index >= 0; index--) pieces.push(`<extra_id_${index}>`);
  const bytes = read("scores.f32");
  // as in the model's file, further tokens have the score of 0
  const scores = Float32Array.from(pieces, (_, id) => (4 * id < bytes.length ? bytes.readFloatLE(4 * id) : 0));
  const ids = new Map(pieces.map((piece, id) => [piece, id]));
  const literals = new Map(["<pad>", "</s>", "<unk>", ...pieces.slice(-EXTRA)].map((text) => [text, ids.get(text)!]));
  return {
    literals,
    unigram: new Unigram(pieces, scores, UNKNOWN),
    characters: new CharacterMap(read("characters.bin")),
  };
});

/**
 * Splits a text into ids of T5's vocabulary, without the end token. Linear, with the longest piece as factor.
 *
 * @internal
 */
export function tokenizeT5(text: string): number[] {
  const { literals, unigram, characters } = t5Vocabulary();
  const ids: number[] = [];
  for (const [index, part] of text.split(LITERALS).entries()) {
    const literal = literals.get(part);
    if (literal !== undefined) ids.push(literal);
    else for (const word of wordsOf(characters.replaced(part), index === 0)) unigram.append(word, ids);
  }
  return ids;
}

/** Words with the sign of a space in front; one that follows a literal without a space is without. */
function wordsOf(text: string, isFirst: boolean): string[] {
  let end = text.length;
  while (end > 0 && (text[end - 1] === " " || text[end - 1] === NEXT_LINE)) end--;
  const words = text.slice(0, end).split(/ +/);
  return words.map((word, index) => (index > 0 || (isFirst && word !== "") ? SPACE + word : word));
}

/** A piece's end in the trie: the parts of a key that find a node. */
const ROOT = 0;
const SLOT_BITS = 18;
const SLOTS = 2 ** SLOT_BITS;
/** How much lower than the lowest score an unknown character's is. */
const UNKNOWN_PENALTY = 10;
const NONE = -1;

/**
 * A vocabulary of pieces with scores; a text is split into the pieces with the highest sum: SentencePiece's Unigram model.
 *
 * @internal
 */
export class Unigram {
  // the trie of all pieces, UTF-16 units as its edges: a node is the slot that its parent and its unit hash to
  readonly #parents = new Int32Array(SLOTS).fill(NONE);
  readonly #units = new Uint16Array(SLOTS);
  /** Id of the piece that ends at a node, or NONE. */
  readonly #ids = new Int32Array(SLOTS).fill(NONE);
  readonly #scores: Float32Array;
  readonly #unknown: number;
  readonly #unknownScore: number;
  // the best way to each place of a word: its score, and the last piece of it
  #best = new Float64Array();
  #starts = new Int32Array();
  #pieces = new Int32Array();

  /** Pieces in the order of their ids, and a score for each. `unknown` is the id of characters that no piece is. */
  constructor(pieces: readonly string[], scores: Float32Array, unknown: number) {
    this.#scores = scores;
    this.#unknown = unknown;
    this.#unknownScore = scores.reduce((least, score) => Math.min(least, score), 0) - UNKNOWN_PENALTY;
    for (const [id, piece] of pieces.entries()) this.#add(piece, id);
  }

  /**
   * Appends the ids of a word; neighbouring characters that are unknown have one. Takes as many steps as the word has
   * units, times the longest piece at most.
   */
  append(word: string, ids: number[]): void {
    this.#reserve(word.length);
    for (let at = 0; at < word.length; at += lengthAt(word, at)) this.#extend(word, at);
    const found: number[] = [];
    for (let end = word.length; end > 0; end = this.#starts[end]!) {
      const id = this.#pieces[end]!;
      if (id !== this.#unknown || found.at(-1) !== id) found.push(id);
    }
    for (const id of found.reverse()) ids.push(id);
  }

  /** Tries every piece that begins at a place, and an unknown character if no piece is as short as that. */
  #extend(word: string, at: number): void {
    const character = lengthAt(word, at);
    let isKnown = false;
    let node = ROOT;
    for (let end = at; end < word.length; ) {
      node = this.#child(node, word.charCodeAt(end));
      end++;
      if (node === NONE) break;
      const id = this.#ids[node]!;
      if (id === NONE) continue;
      this.#offer(at, end, id, this.#scores[id]!);
      isKnown ||= end - at === character;
    }
    if (!isKnown) this.#offer(at, at + character, this.#unknown, this.#unknownScore);
  }

  /** Takes a piece if it makes the best way to its end; among equal ways the first, which has the longest last piece. */
  #offer(start: number, end: number, id: number, score: number): void {
    const sum = this.#best[start]! + score;
    if (this.#starts[end] !== NONE && sum <= this.#best[end]!) return;
    this.#best[end] = sum;
    this.#starts[end] = start;
    this.#pieces[end] = id;
  }

  #reserve(length: number): void {
    if (this.#best.length <= length) {
      this.#best = new Float64Array(2 * length + 1);
      this.#starts = new Int32Array(2 * length + 1);
      this.#pieces = new Int32Array(2 * length + 1);
    }
    this.#starts.fill(NONE, 0, length + 1);
    this.#best[0] = 0;
  }

  #add(piece: string, id: number): void {
    let node = ROOT;
    for (let i = 0; i < piece.length; i++) {
      const slot = this.#slot(node, piece.charCodeAt(i));
      this.#parents[slot] = node;
      this.#units[slot] = piece.charCodeAt(i);
      node = slot;
    }
    this.#ids[node] = id;
  }

  #child(node: number, unit: number): number {
    const slot = this.#slot(node, unit);
    return this.#parents[slot] === NONE ? NONE : slot;
  }

  /** Slot of a child, or the free one where it would be. Slot 0 is the root's. */
  #slot(node: number, unit: number): number {
    let slot = Math.imul(Math.imul(node, 0x85ebca6b) ^ unit, 0x9e3779b1) >>> (32 - SLOT_BITS);
    while (
      slot === ROOT ||
      (this.#parents[slot] !== NONE && (this.#parents[slot] !== node || this.#units[slot] !== unit))
    )
      slot = (slot + 1) & (SLOTS - 1);
    return slot;
  }
}

/** Units of the character that begins there. */
const lengthAt = (text: string, at: number): number => (text.codePointAt(at)! > 0xffff ? 2 : 1);

/** Bytes of a cluster that is looked up as a whole. */
const LONGEST_CLUSTER = 5;
/** Units of a text in which clusters are looked for at a time: the segmenter takes quadratic time on a long text. */
const WINDOW = 256;
const ASCII = 0x80;
const [LINE_FEED, RETURN] = [0x0a, 0x0d];

/**
 * Replaces characters by the map of a SentencePiece model: u32 size of a trie, the trie as a double array (Darts), and the
 * texts that its values point at, each with a NUL behind it.
 *
 * @internal
 */
export class CharacterMap {
  readonly #trie: Uint32Array;
  readonly #texts: Uint8Array;
  readonly #decoded = new Map<number, string>();
  readonly #encoder = new TextEncoder();
  readonly #bytes = new Uint8Array(LONGEST_CLUSTER);
  readonly #ascii: readonly (string | undefined)[];
  readonly #segmenter = new Intl.Segmenter("und", { granularity: "grapheme" });

  constructor(map: Uint8Array) {
    const view = new DataView(map.buffer, map.byteOffset, map.byteLength);
    const size = view.getUint32(0, true);
    this.#trie = Uint32Array.from({ length: size / 4 }, (_, index) => view.getUint32(4 + 4 * index, true));
    this.#texts = map.subarray(4 + size);
    this.#ascii = Array.from({ length: ASCII }, (_, code) => this.#lookUp(String.fromCharCode(code)));
  }

  /**
   * The text with its clusters of up to 5 bytes replaced: by what stands for their shortest beginning in the map, and the
   * rest of such a cluster is lost, as in the reference. Others are replaced character by character.
   */
  replaced(text: string): string {
    const parts: string[] = [];
    let kept = 0;
    const replace = (from: number, length: number, by: string | undefined): void => {
      if (by === undefined) return;
      parts.push(text.slice(kept, from), by);
      kept = from + length;
    };
    for (let at = 0; at < text.length; ) {
      const code = text.charCodeAt(at);
      if (isAlone(code, text.charCodeAt(at + 1))) {
        replace(at, 1, this.#ascii[code]);
        at++;
      } else {
        const [start, end] = [at, windowEnd(text, at)];
        for (const { segment, index } of this.#segmenter.segment(text.slice(start, end))) {
          // it may continue after the window
          if (index > 0 && start + index + segment.length === end && end < text.length) break;
          this.#replaceCluster(segment, start + index, replace);
          at = start + index + segment.length;
        }
      }
    }
    return parts.length === 0 ? text : parts.join("") + text.slice(kept);
  }

  #replaceCluster(cluster: string, at: number, replace: (from: number, length: number, by?: string) => void): void {
    const whole = this.#lookUp(cluster);
    if (whole !== undefined || isOne(cluster)) {
      replace(at, cluster.length, whole);
      return;
    }
    let from = at;
    for (const character of cluster) {
      replace(from, character.length, this.#lookUp(character));
      from += character.length;
    }
  }

  /** Text for the shortest beginning of one of up to 5 bytes; undefined for none, and for longer ones. */
  #lookUp(text: string): string | undefined {
    const { read, written } = this.#encoder.encodeInto(text, this.#bytes);
    if (read < text.length) return undefined;
    let node = offsetOf(this.#trie[0]!);
    for (let i = 0; i < written; i++) {
      const byte = this.#bytes[i]!;
      node ^= byte;
      const unit = this.#trie[node];
      if (byte === 0 || unit === undefined || (unit & 0x800000ff) !== byte) return undefined;
      node ^= offsetOf(unit);
      if ((unit & 0x100) !== 0) return this.#textAt(this.#trie[node]! & 0x7fffffff);
    }
    return undefined;
  }

  #textAt(from: number): string {
    let text = this.#decoded.get(from);
    if (text === undefined) {
      text = new TextDecoder().decode(this.#texts.subarray(from, this.#texts.indexOf(0, from)));
      this.#decoded.set(from, text);
    }
    return text;
  }
}

/** Distance from a unit of the trie to those after it. */
const offsetOf = (unit: number): number => (unit >>> 10) << ((unit & 0x200) >>> 6);

/** Whether an ASCII character is a cluster after any character: only non-ASCII characters can join it. */
const isAlone = (code: number, next: number): boolean =>
  code < ASCII && !(next >= ASCII) && !(code === RETURN && next === LINE_FEED);

const isOne = (cluster: string): boolean => cluster.length === (cluster.codePointAt(0)! > 0xffff ? 2 : 1);

/** End of the window that begins there, not inside a pair of surrogates. */
function windowEnd(text: string, at: number): number {
  const end = Math.min(at + WINDOW, text.length);
  const last = text.charCodeAt(end - 1);
  return end < text.length && last >= 0xd800 && last < 0xdc00 ? end - 1 : end;
}
