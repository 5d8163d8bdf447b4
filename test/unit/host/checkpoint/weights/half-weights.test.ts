import assert from "node:assert/strict";
import { truncateSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { HalfWeights } from "#src/host/checkpoint/weights/half-weights.js";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { f32, type RawTensor, weightFile, words, writeWeights } from "../../../../helpers/models/weight-file.js";

/** As BF16: 1, the largest number that F16 has, the next one, its negative, infinity, NaN. */
const [ONE, LARGEST, BEYOND, NEGATIVE, INFINITE, NAN] = [0x3f80, 0x477f, 0x4780, 0xc780, 0x7f80, 0x7fc0] as const;

describe("HalfWeights", () => {
  const folder = temporaryFolder();
  const open = async (tensors: Record<string, RawTensor>) => {
    const path = writeWeights(join(folder(), "w.safetensors"), tensors);
    return { path, weights: (await weightFile(path)).weights };
  };

  it("finds all in 8 bits, and those in BF16 that have no number beyond F16's", async () => {
    const bytes = { shape: [4], bytes: Uint8Array.of(0x38, 0x7e, 0xfe, 0) };
    const bf16 = (values: readonly number[]) => words("BF16", [values.length], values);
    // more than one part of a file
    const long = new Array<number>(600_000).fill(ONE);
    const { weights } = await open({
      e4m3: { dtype: "F8_E4M3", ...bytes },
      e5m2: { dtype: "F8_E5M2", ...bytes },
      floats: f32([4]),
      halves: words("F16", [1], [0x3c00]),
      within: bf16([ONE, LARGEST, 0x8000]),
      beyond: bf16([ONE, BEYOND]),
      negative: bf16([NEGATIVE, ONE]),
      infinite: bf16([INFINITE]),
      nan: bf16([NAN]),
      long: bf16(long),
      longBeyond: bf16([...long, BEYOND]),
    });
    const found = await new HalfWeights(weights).find();
    assert.deepEqual([...found].map(({ key }) => key).sort(), ["e4m3", "e5m2", "long", "within"]);
  });

  it("takes none that is cut off, and names a file that is gone", async () => {
    const { path, weights } = await open({ w: words("BF16", [4], [ONE, ONE, ONE, ONE]) });
    truncateSync(path, 66);
    assert.deepEqual([...(await new HalfWeights(weights).find())], []);
    unlinkSync(path);
    await refuses(new HalfWeights(weights).find(), "file.not-found", /"w\.safetensors" is not there any more/);
  });
});
