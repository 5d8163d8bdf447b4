import assert from "node:assert/strict";
import { join } from "node:path";
import { tokenizeZImage } from "#src/host/checkpoint/tokenizer/tokenize-qwen.js";
import { root } from "../../../../helpers/folders.js";
import { goldenText } from "../../../../helpers/golden-file.js";

interface Case {
  readonly text: string;
  readonly z_image: readonly number[];
}

describe("tokenizeZImage", () => {
  const { cases } = JSON.parse(goldenText(join(root, "test/golden/models-z-qwen/tokenizer.json"))) as {
    cases: readonly Case[];
  };

  it("gives the reference's ids, with the template", () => {
    assert.equal(cases.length, 31);
    for (const { text, z_image } of cases)
      assert.deepEqual(tokenizeZImage(text.replace(/\\([()])/g, "$1")), z_image, JSON.stringify(text));
  });

  it("takes time that grows with the text's length alone @alone", () => {
    for (const piece of ["a", " ", "\n", "\u00a0", "1", "!", "🎉", "<|im_", "ab ", "\t\r"]) {
      const [few, many] = [2 ** 15, 2 ** 17].map((length) => {
        const text = piece.repeat(length / piece.length);
        const start = performance.now();
        tokenizeZImage(text);
        return performance.now() - start;
      }) as [number, number];
      assert.ok(many < 8 * few + 200, `${JSON.stringify(piece)}: ${few} and ${many} ms`);
    }
  });
});
