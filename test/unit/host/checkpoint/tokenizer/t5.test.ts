import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { brotliDecompressSync } from "node:zlib";
import { CharacterMap, T5_END, t5Tokens, tokenizeT5, Unigram } from "#src/host/checkpoint/tokenizer/t5.js";
import { root } from "../../../../helpers/folders.js";
import { goldenText } from "../../../../helpers/golden-file.js";
import { growsLinearly } from "../../../../helpers/growth.js";
import { FLUX_FOLDER, fluxLayers } from "../../../../helpers/models/golden-flux.js";
import { seededInts } from "../../../../helpers/seeded.js";

interface Encoded {
  readonly prompt: string;
  readonly t5_tokens: readonly (readonly [id: number, weight: number])[];
}

describe("t5Tokens", () => {
  it("splits prompts into the reference's tokens with their weights", () => {
    const vectors: readonly Encoded[] = fluxLayers().encode;
    assert.equal(vectors.length, 4);
    for (const { prompt, t5_tokens } of vectors) {
      const { ids, weights } = t5Tokens(prompt, { fewest: 256 });
      assert.deepEqual(
        ids.map((id, i) => [id, weights[i]]),
        t5_tokens,
      );
    }
  });

  it("leaves out embeddings, which CLIP's encoders alone take", () => {
    const plain = t5Tokens("a cat, (a dog:1.2), a fox", { fewest: 1 });
    const marked = t5Tokens("embedding:x a cat embedding:y, (embedding:z a dog:1.2), a fox", { fewest: 1 });
    assert.deepEqual(marked, plain);
  });

  it("splits each segment by itself, and fills no more than asked for", () => {
    assert.deepEqual(t5Tokens("a (b:1.5)c", { fewest: 1 }), {
      ids: [3, 9, 3, 115, 3, 75, 1],
      weights: [1, 1, 1.5, 1.5, 1, 1, 1],
    });
    assert.deepEqual(t5Tokens("", { fewest: 2 }), { ids: [1, 0], weights: [1, 1] });
    assert.deepEqual(t5Tokens("", { fewest: 1, padding: 1 }), { ids: [1, 0], weights: [1, 1] });
    assert.deepEqual(t5Tokens("", { fewest: 3, padding: 1 }).ids, [1, 0, 0]);
  });
});

interface Golden {
  readonly cases: readonly { readonly text: string; readonly ids: readonly number[] }[];
}

describe("tokenizeT5", () => {
  it("makes the ids of the reference", () => {
    const { cases } = JSON.parse(goldenText(join(FLUX_FOLDER, "t5_tokenizer.json"))) as Golden;
    assert.equal(cases.length, 310);
    for (const { text, ids } of cases) assert.deepEqual([...tokenizeT5(text), T5_END], ids, JSON.stringify(text));
  });

  it("reads every literal of further tokens, and nothing like them", () => {
    for (let index = 0; index < 100; index++) assert.deepEqual(tokenizeT5(`<extra_id_${index}>`), [32_099 - index]);
    for (const text of ["<extra_id_100>", "<extra_id_07>", "<PAD>", "</s >"])
      assert.ok(tokenizeT5(text).length > 3, text);
  });

  it("reads lone surrogates as the space that stands for invalid characters", () => {
    assert.deepEqual(tokenizeT5("a\ud800b"), tokenizeT5("a b"));
    assert.deepEqual(tokenizeT5("\udc00"), []);
  });

  it("takes time in proportion to the length of a text, whatever is in it", async () => {
    const units = [
      "a",
      "ab ",
      "vulnerabilities",
      "é",
      "中",
      "ｆ",
      "\u0301",
      "a\u0301",
      "👨‍👩‍👧",
      "🇩",
      " ",
      "\r\n",
      "\u0085",
    ];
    for (const unit of [...units, "<pad>", "<extra_id_", "\ud800", "\u0600", "각", "\u0000"])
      await growsLinearly(2500, (size) => unit.repeat(Math.ceil(size / unit.length)), tokenizeT5);
  });
});

const UNKNOWN = 0;
const PIECES = ["<unk>", "a", "b", "ab", "ba", "aab", "bbb", "é", "ca"];

/** Every way to cut a word into pieces and unknown characters, with its score. */
function* ways(word: string, score: (id: number) => number): Generator<{ ids: number[]; sum: number }> {
  if (word === "") yield { ids: [], sum: 0 };
  const [first] = word;
  const starts = PIECES.flatMap((piece, id) =>
    id > 0 && word.startsWith(piece) ? [{ id, length: piece.length }] : [],
  );
  if (word !== "" && !starts.some(({ length }) => length === first!.length))
    starts.push({ id: UNKNOWN, length: first!.length });
  for (const { id, length } of starts)
    for (const rest of ways(word.slice(length), score)) yield { ids: [id, ...rest.ids], sum: score(id) + rest.sum };
}

describe("Unigram", () => {
  it("takes the pieces whose scores have the highest sum", () => {
    const random = seededInts(11);
    let [scores, unigram] = [new Float32Array(), new Unigram([], new Float32Array(), UNKNOWN)];
    for (let round = 0; round < 300; round++) {
      if (round % 20 === 0) {
        scores = Float32Array.from(PIECES, () => -(1 + random(1000)) / 128);
        unigram = new Unigram(PIECES, scores, UNKNOWN);
      }
      const least = Math.min(...scores) - 10;
      const word = Array.from({ length: 1 + random(7) }, () => ["a", "b", "c", "é", "🍣"][random(5)]!).join("");
      const all = [...ways(word, (id) => (id === UNKNOWN ? least : scores[id]!))];
      const best = Math.max(...all.map(({ sum }) => sum));
      const expected = all
        .filter(({ sum }) => sum === best)
        .map(({ ids }) => ids.filter((id, i) => id !== UNKNOWN || ids[i - 1] !== id));
      const ids: number[] = [];
      unigram.append(word, ids);
      assert.ok(
        expected.some((each) => each.join() === ids.join()),
        `${word}: ${ids.join()} instead of ${expected.join(" or ")}`,
      );
    }
  });

  it("takes of equal ways the one with the longest last piece", () => {
    const ids: number[] = [];
    new Unigram(["<unk>", "a", "aa"], Float32Array.of(0, -1, -2), UNKNOWN).append("aaa", ids);
    assert.deepEqual(ids, [1, 2]);
  });

  it("gives neighbouring unknown characters one id, and appends to those of other words", () => {
    const ids = [7];
    new Unigram(PIECES, new Float32Array(PIECES.length), UNKNOWN).append("🍣🍣a🍣", ids);
    assert.deepEqual(ids, [7, 0, 1, 0]);
  });
});

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
