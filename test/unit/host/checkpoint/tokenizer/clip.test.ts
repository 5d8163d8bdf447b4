import assert from "node:assert/strict";
import { join } from "node:path";
import { type ClipEncoder, tokenizePrompt } from "latentkit";
import { END, START } from "#src/host/checkpoint/tokenizer/byte-pairs.js";
import { tokenizeClip } from "#src/host/checkpoint/tokenizer/clip.js";
import { goldenText } from "../../../../helpers/golden-file.js";
import { growsLinearly } from "../../../../helpers/growth.js";
import { goldenModels } from "../../../../helpers/models/golden.js";

interface Golden {
  readonly cases: readonly { readonly text: string; readonly ids: readonly number[] }[];
  readonly framed: readonly {
    readonly text: string;
    readonly pad_end: readonly number[][];
    readonly pad_zero: readonly number[][];
    readonly weights: readonly number[][];
  }[];
}

const golden = JSON.parse(goldenText(join(goldenModels(), "tokenizer.json"))) as Golden;

const encoder = (pad: number): ClipEncoder => ({
  name: "l",
  start: START,
  end: END,
  pad,
  length: 77,
  tokenize: tokenizeClip,
  encode: () => assert.fail("nothing is encoded"),
});

describe("tokenizeClip", () => {
  it("makes the ids of the reference", () => {
    assert.equal(golden.cases.length, 364);
    for (const { text, ids } of golden.cases) assert.deepEqual(tokenizeClip(text), ids, JSON.stringify(text));
  });

  it("is framed in chunks as the reference frames it", () => {
    assert.equal(golden.framed.length, 70);
    for (const { text, pad_end, pad_zero, weights } of golden.framed) {
      const ended = tokenizePrompt(text, encoder(END));
      const zeroed = tokenizePrompt(text, encoder(0));
      const idsOf = (chunks: typeof ended) => chunks.map((chunk) => chunk.map(({ id }) => id));
      assert.deepEqual(idsOf(ended), pad_end, text);
      assert.deepEqual(idsOf(zeroed), pad_zero, text);
      assert.deepEqual(
        ended.map((chunk) => chunk.map(({ weight }) => weight)),
        weights,
        text,
      );
    }
  });

  it("splits a text at special tokens before it is cleaned, and in any case after", () => {
    assert.deepEqual(tokenizeClip("cat<|endoftext|>cat"), [2368, END, 2368]);
    assert.deepEqual(tokenizeClip("<|endoftext|>".repeat(2)), [END, END]);
    assert.deepEqual(tokenizeClip("!<|endoftext|>"), [0 + 256, END]);
    assert.deepEqual(tokenizeClip("<|StartOfText|>"), [START]);
    // in the middle of other signs a special token of another case is none
    assert.ok(!tokenizeClip("!<|StartOfText|>").includes(START));
  });

  it("reads a long s as an s of the pattern, and U+0345 as nothing", () => {
    // ids of transformers 4
    assert.deepEqual(tokenizeClip("it'\u017f"), [585, 6, 129, 379]);
    assert.deepEqual(tokenizeClip("<|\u017ftartoftext|>"), [27, 91, 129, 123, 2002, 6659, 18169, 91, 285]);
    assert.deepEqual(tokenizeClip("\u0345cat"), [2368]);
    assert.deepEqual(tokenizeClip("a\u0345b"), [320, 321]);
    assert.deepEqual(tokenizeClip("!\u0345!"), [256, 256]);
  });

  it("drops lone surrogates", () => {
    assert.deepEqual(tokenizeClip("c\ud800at\udc00"), [2368]);
  });

  it("composes marks across any distance that writing has", () => {
    assert.deepEqual(tokenizeClip("e\u0316\u0301"), tokenizeClip("\u00e9\u0316"));
  });

  it("takes time in proportion to the length of a text, whatever is in it", async () => {
    const units = ["a", "th", "ab ", "\u0301", "\u0301\u0316", "中", "1", "<|", "'s", "👍", "ΑΣ", "\u0000", "ﷺ", " "];
    for (const unit of units)
      await growsLinearly(2500, (size) => unit.repeat(Math.ceil(size / unit.length)), tokenizeClip);
    await growsLinearly(2500, (size) => `a${"\u0301".repeat(size)}${"\u0316".repeat(size)}`, tokenizeClip);
  });
});
