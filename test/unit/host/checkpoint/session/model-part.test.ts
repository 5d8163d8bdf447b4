import assert from "node:assert/strict";
import { ModelPart } from "#src/host/checkpoint/session/model-part.js";
import type { StoredWeight, WeightFile } from "#src/host/checkpoint/weights/stored.js";

const FILE = { path: "/models/a.safetensors", bytes: 0, modifiedNs: 0n, inode: 0n } as unknown as WeightFile;
const BYTES = { F32: 4, F16: 2, F8_E4M3: 1 };

describe("ModelPart", () => {
  const weight = (dtype: keyof typeof BYTES, ...shape: number[]) => {
    const to = shape.reduce((product, side) => product * side, BYTES[dtype]);
    return { file: FILE.path, key: "", dtype, shape, from: 0, to } satisfies StoredWeight;
  };
  const source = (...weights: StoredWeight[]) => {
    const named = new Map(weights.map((each, index) => [String(index), each]));
    return new ModelPart("text encoder of a", FILE, {}, named).session("one", () => {}, { work: { tokens: 5 } });
  };

  it("says how large its weights are, and what its builder says of a run", () => {
    const { parameters, halfParameters, fileBytes, packedParameters, work } = source(
      weight("F32", 10),
      weight("F16", 30, 20),
      weight("F8_E4M3", 7, 1, 2),
    );
    assert.deepEqual([parameters, halfParameters, fileBytes, packedParameters], [624, 614, 40 + 1200 + 14, 0]);
    assert.deepEqual(work, { tokens: 5 });
  });

  it("has a whole weight converted in a streamed run, but for vocabularies of which rows are read", () => {
    const words = 32_128;
    assert.equal(source(weight("F16", 300, 20), weight("F16", words, 4)).convertedParameters, 6000);
    assert.equal(source(weight("F16", 300, 20), weight("F8_E4M3", words, 4)).convertedParameters, words * 4 + 1500);
    assert.equal(source(weight("F32")).convertedParameters, 1);
  });
});
