import assert from "node:assert/strict";
import { truncateSync } from "node:fs";
import { join } from "node:path";
import { openWeightFile } from "#src/host/checkpoint/weights/stored.js";
import { readValues } from "#src/host/checkpoint/weights/values.js";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { f32, type RawTensor, words, writeWeights } from "../../../../helpers/models/weight-file.js";

describe("readValues", () => {
  const folder = temporaryFolder();
  const open = (tensors: Record<string, RawTensor>) =>
    openWeightFile(writeWeights(join(folder(), "v.safetensors"), tensors));
  const bytes = (dtype: string, values: readonly number[]): RawTensor => ({
    dtype,
    shape: [values.length],
    bytes: Uint8Array.from(values),
  });

  it("reads every type of floats of at most 32 bits", async () => {
    const { weights } = await open({
      full: f32([2, 2]),
      half: words("F16", [3], [0x3c00, 0xc000, 0x0001]),
      brain: words("BF16", [2], [0x3f80, 0xc000]),
      e4m3: bytes("F8_E4M3", [0x38, 0xb8, 0x01, 0x7e, 0x08, 0x7f]),
      e5m2: bytes("F8_E5M2", [0x3c, 0xbc, 0x01, 0x7b, 0x7c]),
    });
    const values = async (key: string) => [...(await readValues(weights.get(key)!))];
    assert.deepEqual(await values("full"), [1, 2, 3, 4]);
    assert.deepEqual(await values("half"), [1, -2, 2 ** -24]);
    assert.deepEqual(await values("brain"), [1, -2]);
    assert.deepEqual(await values("e4m3"), [1, -1, 2 ** -9, 448, 2 ** -6, Number.NaN]);
    assert.deepEqual(await values("e5m2"), [1, -1, 2 ** -16, 57344, Number.POSITIVE_INFINITY]);
  });

  it("refuses large weights, whole numbers and files that have shrunk", async () => {
    const file = await open({ large: f32([2 ** 18 + 1]), whole: bytes("U8", [1]), last: f32([4]) });
    await refuses(readValues(file.weights.get("large")!), "model.invalid", /at most 1048576 bytes/);
    await refuses(readValues(file.weights.get("whole")!), "model.invalid", /floats, received U8/);
    truncateSync(file.path, file.bytes - 4);
    await refuses(readValues(file.weights.get("last")!), "model.invalid", /expected \d+ bytes/);
    const gone = { ...file.weights.get("last")!, file: join(folder(), "none") };
    await refuses(readValues(gone), "file.read-failed", /ENOENT/);
  });
});
