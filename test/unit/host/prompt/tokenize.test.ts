import assert from "node:assert/strict";
import { type ClipEncoder, encodePrompt, LatentkitError, tokenizePrompt } from "latentkit";
import { tokenGroups, withoutEmbeddings } from "#src/host/prompt/tokenize.js";
import { refuses } from "../../../helpers/errors.js";
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

  it("splits a segment of 8 tokens at the end of the chunk", () => {
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

  it("leaves weights alone if the prompt has no tokens", () => {
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
        assert.match(error.message, /none, mean, length or length\+mean, received 5\./);
        return true;
      },
    );
    const broken = { ...encoder, tokenize: () => [1.5] };
    assert.throws(() => tokenizePrompt("a", broken), /Clip encoder "l"/);
  });
});

const [plain] = fakeClip("l").encoders;
/** "foo" has the rows 50000 to 50002, "long" nine from 60000 on; tokens of texts are their words. */
function encoderWith(asked: string[] = [], tokenized: string[] = []): ClipEncoder {
  return {
    ...plain!,
    tokenize: (text) => {
      tokenized.push(text);
      return text.split(/\s+/).flatMap((word) => (word === "" ? [] : [word.length]));
    },
    embedding: (word) => {
      asked.push(word);
      const bare = word.replace(",", "");
      const [from, count] = bare === "foo" ? [50_000, 3] : bare === "long" ? [60_000, 9] : [0, 0];
      return { ids: Array.from({ length: count }, (_, i) => from + i), rest: word.slice(bare.length) };
    },
  };
}

describe("tokenGroups", () => {
  it("looks up names at the beginning and after a space or line end, up to white space", () => {
    const asked: string[] = [];
    const tokenized: string[] = [];
    const text = "embedding:foo a embedding:foo, b\nembedding:none c\tembedding:foo xembedding:foo";
    const groups = tokenGroups(text, encoderWith(asked, tokenized));
    assert.deepEqual(asked, ["foo", "foo,", "none"]);
    assert.deepEqual(tokenized, ["", " a ", ", b\n", " c\tembedding:foo xembedding:foo"]);
    assert.deepEqual(groups.slice(0, 4), [[], [50000, 50001, 50002], [1], [50000, 50001, 50002]]);
  });

  it("reads a mark without a name as text", () => {
    const tokenized: string[] = [];
    tokenGroups("embedding: foo embedding:", encoderWith([], tokenized));
    assert.deepEqual(tokenized, ["embedding: foo embedding:"]);
  });

  it("leaves embeddings to encoders that have them", () => {
    assert.deepEqual(tokenGroups("embedding:foo", plain!), [plain!.tokenize("embedding:foo")]);
  });

  it("makes each embedding and the text around it words of their own", () => {
    const [chunk] = tokenizePrompt("a embedding:foo b (embedding:foo:1.2)", encoderWith());
    const tokens = chunk!.filter(({ word }) => word > 0);
    assert.deepEqual(
      tokens.map(({ id }) => id),
      [1, 50000, 50001, 50002, 1, 50000, 50001, 50002],
    );
    assert.deepEqual(
      tokens.map(({ weight }) => weight),
      [1, 1, 1, 1, 1, 1.2, 1.2, 1.2],
    );
    assert.equal(new Set(tokens.map(({ word }) => word)).size, 4);
  });

  it("moves a short embedding to the next chunk whole and splits a long one", () => {
    const before = "w ".repeat(74);
    const short = tokenizePrompt(`${before}embedding:foo`, encoderWith());
    assert.deepEqual(
      short.map((chunk) => chunk.filter(({ word }) => word > 0).length),
      [74, 3],
    );
    const long = tokenizePrompt(`${before}embedding:long`, encoderWith());
    assert.deepEqual(
      long.map((chunk) => chunk.filter(({ word }) => word > 0).length),
      [75, 8],
    );
  });

  it("refuses ids that are none", async () => {
    const encoder: ClipEncoder = { ...plain!, embedding: () => ({ ids: [0.5], rest: "" }) };
    await refuses(() => tokenGroups("embedding:x", encoder), "value.invalid", /embedding\(\) to return a list/);
    await refuses(encodePrompt({ encoders: [encoder] }, "embedding:x"), "value.invalid");
  });
});

describe("withoutEmbeddings", () => {
  it("leaves out the words that an encoder of CLIP's would look up, and nothing else", () => {
    for (const [text, plain] of [
      ["embedding:foo a cat", "a cat"],
      ["a cat, embedding:foo, a dog", "a cat,, a dog"],
      ["a cat embedding:foo\na dog embedding:b.safetensors", "a cat\na dog"],
      ["embedding:foo embedding:bar", ""],
      [" a (cat:1.2)", " a (cat:1.2)"],
      ["catembedding:foo embedding: foo Embedding:foo", "catembedding:foo embedding: foo Embedding:foo"],
    ] as const)
      assert.equal(withoutEmbeddings(text), plain, text);
  });
});
