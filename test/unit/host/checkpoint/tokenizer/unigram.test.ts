import assert from "node:assert/strict";
import { Unigram } from "#src/host/checkpoint/tokenizer/unigram.js";
import { seededInts } from "../../../../helpers/seeded.js";

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
