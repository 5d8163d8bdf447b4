import assert from "node:assert/strict";
import { readReceipt, unknownFields } from "#src/render/receipt/read.js";

const hash = `sha256:${"0a".repeat(32)}`;
const receipt = {
  version: 1,
  engine: "0.1.0",
  graph: hash,
  node: "6",
  index: 0,
  pixels: `blake3:${"0b".repeat(32)}`,
  seeds: { "3.seed": "18446744073709551615" },
  noise: { "3": "gpu" },
  inputs: { "lake.png": hash },
  host: { name: "preview", preview: true },
  redacted: ["text"],
};

describe("readReceipt", () => {
  it("reads what a run writes, and keys of later versions", () => {
    assert.deepEqual(readReceipt(JSON.stringify(receipt)), receipt);
    const later = readReceipt(JSON.stringify({ ...receipt, later: 1, host: { ...receipt.host, gpu: 1 } }))!;
    assert.deepEqual(unknownFields(later), ["later", "host.gpu"]);
    assert.deepEqual(unknownFields(receipt as never), []);
  });

  it("refuses everything else", () => {
    const wrong: object[] = [
      { version: 2 },
      { engine: 1 },
      { graph: "sha256:00" },
      { graph: hash.toUpperCase() },
      { node: 6 },
      { node: "6".repeat(5000) },
      { index: -1 },
      { index: 0.5 },
      { pixels: undefined },
      { pixels: hash },
      { seeds: { "3.seed": 7 } },
      { noise: { "3": "tpu" } },
      { inputs: ["lake.png"] },
      { host: "preview" },
      { redacted: "text" },
    ];
    for (const change of wrong) {
      assert.equal(
        readReceipt(JSON.stringify({ ...receipt, ...change })),
        undefined,
        JSON.stringify(change).slice(0, 80),
      );
    }
    for (const text of ["", "{", "null", "[]", "1", `{"__proto__": {}}`, "[".repeat(100_000)]) {
      assert.equal(readReceipt(text), undefined);
    }
  });
});
