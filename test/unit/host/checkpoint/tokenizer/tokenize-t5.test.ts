import assert from "node:assert/strict";
import { join } from "node:path";
import { T5_END, tokenizeT5 } from "#src/host/checkpoint/tokenizer/tokenize-t5.js";
import { goldenText } from "../../../../helpers/golden-file.js";
import { growsLinearly } from "../../../../helpers/growth.js";
import { FLUX_FOLDER } from "../../../../helpers/models/golden-flux.js";

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

  it("reads lone surrogates as the space that stands for what is no character", () => {
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
