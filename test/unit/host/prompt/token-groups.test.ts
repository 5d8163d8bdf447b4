import assert from "node:assert/strict";
import { type ClipEncoder, encodePrompt, tokenizePrompt } from "latentkit";
import { tokenGroups } from "#src/host/prompt/token-groups.js";
import { refuses } from "../../../helpers/errors.js";
import { fakeClip } from "../../../helpers/graph/fake-clip.js";

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
