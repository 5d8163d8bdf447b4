import { BytePairs } from "./byte-pairs.js";
import { cleanWords } from "./clean.js";
import { clipVocabulary, END, START } from "./vocabulary.js";

/** Special tokens by their texts. */
const SPECIAL: ReadonlyMap<string, number> = new Map([
  ["<|startoftext|>", START],
  ["<|endoftext|>", END],
]);
const SPECIAL_TEXT = /(<\|startoftext\|>|<\|endoftext\|>)/;
/**
 * Pieces of a word in lower case: special tokens, English endings, letters, single digits, anything else. The reference
 * ignores case in this pattern, so that ſ is an s in it, and U+0345, which ι is in upper case, is neither letter nor sign:
 * it belongs to no piece.
 */
const PIECES =
  /<\|[sſ]tartoftext\|>|<\|endoftext\|>|'[sſ]|'t|'re|'ve|'m|'ll|'d|\p{L}+|\p{N}|(?:(?!\u0345)[^\s\p{L}\p{N}])+/gu;

/** Splits a text into ids of CLIP's vocabulary, as transformers 4 does without ftfy. Linear but for the logarithm. */
export function tokenizeClip(text: string): number[] {
  const pairs = new BytePairs(clipVocabulary());
  const ids: number[] = [];
  // the texts of special tokens split a text before it is cleaned, so that no word joins them
  for (const part of text.split(SPECIAL_TEXT)) {
    const special = SPECIAL.get(part);
    if (special !== undefined) {
      ids.push(special);
      continue;
    }
    for (const [piece] of cleanWords(part).join(" ").matchAll(PIECES)) {
      const id = SPECIAL.get(piece);
      if (id === undefined) pairs.append(piece, ids);
      else ids.push(id);
    }
  }
  return ids;
}
