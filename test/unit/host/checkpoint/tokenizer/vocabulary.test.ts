import assert from "node:assert/strict";
import { clipVocabulary, END, qwenVocabulary, START, Vocabulary } from "#src/host/checkpoint/tokenizer/vocabulary.js";

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
