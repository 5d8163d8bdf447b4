import assert from "node:assert/strict";
import { LatentkitError, tokenizePrompt } from "latentkit";
import { fakeClip } from "../../../helpers/graph/fake-clip.js";

const words = (count: number): string => Array.from({ length: count }, () => "w").join(" ");
const [l] = fakeClip("l").encoders;
const [, g] = fakeClip("xl").encoders;
const encoder = l!;

describe("tokenizePrompt", () => {
  it("moves a segment under 8 tokens whole to the next chunk", () => {
    const chunks = tokenizePrompt(`${words(70)} (${words(7)}:1.2)`, encoder);
    assert.equal(chunks.length, 2);
    assert.deepEqual(chunks[0]![71], { id: 49407, weight: 1, word: 0 });
    assert.ok(chunks[1]!.slice(1, 8).every(({ word, weight }) => word === 2 && weight === 1.2));
  });

  it("splits a segment of 8 tokens where the chunk is full", () => {
    const chunks = tokenizePrompt(`${words(70)} (${words(8)}:1.2)`, encoder);
    assert.equal(chunks[0]![75]!.word, 2);
    assert.equal(chunks[0]![76]!.id, 49407);
    assert.equal(chunks[1]!.filter(({ word }) => word === 2).length, 3);
  });

  it("makes one chunk of 75 tokens and two of 76", () => {
    assert.equal(tokenizePrompt(words(75), encoder).length, 1);
    assert.equal(tokenizePrompt(words(76), encoder).length, 2);
  });

  it("pads with the encoder's own token", () => {
    assert.deepEqual(tokenizePrompt("", g!)[0]![2], { id: 0, weight: 1, word: 0 });
  });

  it("leaves weights alone where the prompt has no tokens", () => {
    const [chunk] = tokenizePrompt("", encoder, { tokenNormalization: "length+mean" });
    assert.ok(chunk!.every(({ weight }) => weight === 1));
  });

  it("reads an unknown normalisation as none; refuses non-texts and bad encoders", () => {
    const plain = tokenizePrompt("a (b:1.4)", encoder);
    assert.deepEqual(tokenizePrompt("a (b:1.4)", encoder, { tokenNormalization: "lenght" }), plain);
    assert.notDeepEqual(tokenizePrompt("a (b:1.4)", encoder, { tokenNormalization: "mean" }), plain);
    assert.throws(
      () => tokenizePrompt("a", encoder, { tokenNormalization: 5 as unknown as string }),
      (error) => {
        assert.ok(error instanceof LatentkitError);
        assert.match(error.message, /none, mean, length, length\+mean, received 5\./);
        return true;
      },
    );
    const broken = { ...encoder, tokenize: () => [1.5] };
    assert.throws(() => tokenizePrompt("a", broken), /Clip encoder "l"/);
  });
});
