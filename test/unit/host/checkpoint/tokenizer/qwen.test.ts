import assert from "node:assert/strict";
import { join } from "node:path";
import { idsBeforeUser, tokenizeQwenImage, tokenizeZImage } from "#src/host/checkpoint/tokenizer/qwen.js";
import { root } from "../../../../helpers/folders.js";
import { goldenText } from "../../../../helpers/golden-file.js";

interface Case {
  readonly text: string;
  readonly z_image: readonly number[];
  readonly qwen_image: readonly number[];
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

  it("knows each special token in a text, and no other one", () => {
    const [start, end] = [tokenizeZImage("").slice(0, 3), tokenizeZImage("").slice(3)];
    const names = ["im_start", "box_end", "vision_pad", "fim_pad", "file_sep"].map((name) => `<|${name}|>`);
    const ids = [151644, 151649, 151654, 151662, 151664];
    for (const [i, text] of [...names, "<tool_call>", "</think>"].entries())
      assert.deepEqual(tokenizeZImage(text), [...start, [...ids, 151657, 151668][i], ...end], text);
    assert.ok(tokenizeZImage("<|im_stop|>").length > start.length + 1 + end.length);
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

describe("tokenizeQwenImage", () => {
  const { cases } = JSON.parse(goldenText(join(root, "test/golden/models-z-qwen/tokenizer.json"))) as {
    cases: readonly Case[];
  };

  it("gives the reference's ids, and counts those before the user's words", () => {
    for (const { text, qwen_image } of cases) {
      const ids = tokenizeQwenImage(text.replace(/\\([()])/g, "$1"), "image");
      assert.deepEqual(ids, qwen_image, JSON.stringify(text));
      if (!text.startsWith("<|im_start|>")) assert.equal(idsBeforeUser(ids), 34);
    }
    assert.equal(idsBeforeUser(tokenizeQwenImage("a", "edit")), 64);
  });

  it("takes a prompt as it is that begins with a message", () => {
    const whole = (text: string): number[] => tokenizeQwenImage(text, "image");
    assert.deepEqual(whole("<|im_start|>user\na"), [151644, 872, 198, 64]);
    assert.equal(idsBeforeUser(whole("<|im_start|>user\na")), 0);
    const [start, system] = [151644, whole("<|im_start|>system\nb")];
    assert.equal(idsBeforeUser([...system, start, 872, 198, 64]), system.length + 3);
    assert.equal(idsBeforeUser([...system, start, 64]), system.length);
  });
});
