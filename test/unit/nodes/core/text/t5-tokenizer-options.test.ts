import assert from "node:assert/strict";
import { type Clip, invokeNode } from "latentkit";
import { fakeClip } from "../../../../helpers/graph/fake-clip.js";

describe("T5TokenizerOptions", () => {
  const run = async (clip: Clip) =>
    (await invokeNode("T5TokenizerOptions", { clip, min_padding: 1, min_length: 256 })).result[0];

  it("hands the options to a clip with such encoders; another one stays as it is", async () => {
    const other = fakeClip("l");
    const seen: object[] = [];
    const withT5Options = (options: object) => {
      seen.push(options);
      return other;
    };
    assert.equal(await run({ ...fakeClip("l"), withT5Options }), other);
    assert.deepEqual(seen, [{ min_padding: 1, min_length: 256 }]);
    assert.equal(await run(other), other);
  });
});
