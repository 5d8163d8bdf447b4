import { readFileSync } from "node:fs";
import { brotliDecompressSync } from "node:zlib";
import { lazy } from "../../../base/lazy-packages.js";
import { CharacterMap } from "./character-map.js";
import { Unigram } from "./unigram.js";

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

/** Splits a text into ids of T5's vocabulary, without the end token. Linear, with the longest piece as factor. */
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
