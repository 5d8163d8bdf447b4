import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { brotliDecompressSync } from "node:zlib";
import { CharacterMap } from "#src/host/checkpoint/tokenizer/character-map.js";
import { root } from "../../../../helpers/folders.js";

describe("CharacterMap", () => {
  const file = `${root}/src/host/checkpoint/tokenizer/t5-vocab/characters.bin.br`;
  const map = new CharacterMap(brotliDecompressSync(readFileSync(file)));

  it("replaces clusters, and single characters of longer ones", () => {
    const cases: [string, string][] = [
      ["plain", "plain"],
      ["", ""],
      ["ｆｕｌｌ", "full"],
      ["ﬁne", "fine"],
      ["e\u0301", "é"],
      // the rest of a short cluster is lost
      ["A\u030a\u0301", "Å"],
      ["\r\n", " "],
      // longer than five bytes
      ["A\u030a\u0301\u0301", "A\u030a\u0301\u0301"],
      ["\u200b\u0007", " "],
    ];
    for (const [text, expected] of cases) assert.equal(map.replaced(text), expected, JSON.stringify(text));
  });

  it("finds clusters at any place of a long text", () => {
    for (let length = 240; length < 270; length++) {
      const before = `é${"中".repeat(length)}`;
      assert.equal(map.replaced(`${before}e\u0301${before}`), `${before}é${before}`);
      assert.equal(map.replaced(`${before}🍣🍣${before}`), `${before}🍣🍣${before}`);
    }
  });

  it("goes on after a cluster of any length", () => {
    const cluster = `e${"\u0316".repeat(1000)}`;
    assert.equal(map.replaced(`${cluster}ﬁ`), `${cluster}fi`);
  });
});
