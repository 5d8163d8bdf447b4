import { BytePairs, clipVocabulary, END, START } from "./byte-pairs.js";

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

/** Splits a text into ids of CLIP's vocabulary, as transformers 4 does without ftfy. Takes n log n steps. */
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

/** Characters that are dropped: those of category C but tab and line ends, and U+FFFD. */
const DROPPED = /(?![\t\n\r])[\p{C}\ufffd]/gu;
/** Ideographs, by the ranges that the reference lists. */
const IDEOGRAPH =
  /[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b820}-\u{2ceaf}\u{2f800}-\u{2fa1f}]/gu;
/** Normalising n marks in a row takes n² steps; no writing has a tenth of these in a row. */
const MARKS = /[^\p{M}]*\p{M}{0,128}/gu;
const SPACE = /\s+/;

/**
 * Splits a text into words as the reference cleans it (transformers 4 without ftfy): drops control characters, sets spaces
 * around ideographs, splits at whitespace, composes (NFC) and lower-cases each word by itself: a sigma at its end is final.
 */
function cleanWords(text: string): string[] {
  const spaced = text.replace(DROPPED, "").replace(IDEOGRAPH, " $& ");
  const composed = spaced.replace(MARKS, (run) => run.normalize("NFC"));
  const words = composed.split(SPACE).filter((word) => word !== "");
  return words.map((word) => word.toLowerCase());
}
