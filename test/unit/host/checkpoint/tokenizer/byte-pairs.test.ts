import assert from "node:assert/strict";
import {
  BytePairs,
  clipVocabulary,
  END,
  qwenVocabulary,
  START,
  Vocabulary,
} from "#src/host/checkpoint/tokenizer/byte-pairs.js";
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

describe("Vocabulary", () => {
  it("numbers the bytes from ! on, the others after ÿ", () => {
    const { byteIds } = clipVocabulary();
    assert.equal(byteIds[33], 0);
    assert.equal(byteIds[255], 187);
    assert.equal(byteIds[0], 188);
    assert.equal(byteIds[173], 255);
    assert.equal(new Set(byteIds).size, 256);
  });

  it("numbers merges after the symbols, up to the start token", () => {
    const vocabulary = clipVocabulary();
    const id = (letter: string) => vocabulary.byteIds[letter.charCodeAt(0)]!;
    // "i n" is the first line, "jeky ll</w>" the last
    assert.equal(vocabulary.merge(id("i"), id("n")), 512);
    const je = vocabulary.merge(id("j"), id("e"));
    const ky = vocabulary.merge(je, vocabulary.merge(id("k"), id("y")));
    const ll = vocabulary.merge(id("l"), id("l") + 256);
    assert.equal(vocabulary.merge(ky, ll), START - 1);
    assert.equal(END, START + 1);
    assert.equal(vocabulary.merge(id("q"), id("z")), 0);
  });

  it("reads merges whose tokens have a common hash slot or a common beginning", () => {
    const merges = Buffer.from("a b\nab c\nabc a\na bc</w>\nb c</w>\n");
    const vocabulary = new Vocabulary(merges, { slotBits: 10, hasWordEnds: true });
    const [a, b, c] = [..."abc"].map((letter) => vocabulary.byteIds[letter.charCodeAt(0)]!) as [number, number, number];
    assert.equal(vocabulary.merge(a, b), 512);
    assert.equal(vocabulary.merge(512, c), 513);
    assert.equal(vocabulary.merge(513, a), 514);
    assert.equal(vocabulary.merge(b, c + 256), 516);
    assert.equal(vocabulary.merge(c, a), 0);
  });

  it("numbers merges of a vocabulary without ends of words after the bytes", () => {
    const { byteIds, wordEnd } = qwenVocabulary();
    assert.equal(wordEnd, 0);
    const id = (letter: string) => byteIds[letter.charCodeAt(0)]!;
    // two spaces are the first line
    assert.equal(qwenVocabulary().merge(id(" "), id(" ")), 256);
  });
});
