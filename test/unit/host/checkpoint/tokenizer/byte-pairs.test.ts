import assert from "node:assert/strict";
import { BytePairs } from "#src/host/checkpoint/tokenizer/byte-pairs.js";
import { clipVocabulary, type Vocabulary } from "#src/host/checkpoint/tokenizer/vocabulary.js";
import { seededInts } from "../../../../helpers/seeded.js";

/** Merges as the page of the method has it: all pairs of the lowest merge, from left to right, then again. */
function mergeNaively(word: string, vocabulary: Vocabulary): number[] {
  let tokens = [...Buffer.from(word)].map((byte) => vocabulary.byteIds[byte]!);
  tokens[tokens.length - 1]! += 256;
  for (;;) {
    const merges = tokens.slice(1).map((right, i) => vocabulary.merge(tokens[i]!, right));
    const lowest = Math.min(...merges.filter((id) => id !== 0));
    if (!Number.isFinite(lowest)) return tokens;
    const merged: number[] = [];
    for (let i = 0; i < tokens.length; i++) {
      const isPair = i + 1 < tokens.length && vocabulary.merge(tokens[i]!, tokens[i + 1]!) === lowest;
      merged.push(isPair ? lowest : tokens[i]!);
      if (isPair) i++;
    }
    tokens = merged;
  }
}

describe("BytePairs", () => {
  it("merges as the naive method does", () => {
    const vocabulary = clipVocabulary();
    const pairs = new BytePairs(vocabulary);
    const random = seededInts(7);
    const alphabets = ["ab", "aeiotn", "the", "!?.", "éàc", "中文", "🍣a"].map((letters) => [...letters]);
    for (let round = 0; round < 2000; round++) {
      const letters = alphabets[round % alphabets.length]!;
      const length = 1 + random(40);
      const word = Array.from({ length }, () => letters[random(letters.length)]!).join("");
      const ids: number[] = [];
      pairs.append(word, ids);
      assert.deepEqual(ids, mergeNaively(word, vocabulary), word);
    }
  });
});
