import assert from "node:assert/strict";
import { truncateSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { HalfWeights, readValues } from "#src/host/checkpoint/weights/values.js";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { f32, type RawTensor, weightFile, words, writeWeights } from "../../../../helpers/models/weight-file.js";

describe("readValues", () => {
  const folder = temporaryFolder();
  const open = (tensors: Record<string, RawTensor>) =>
    weightFile(writeWeights(join(folder(), "v.safetensors"), tensors));
  const bytes = (dtype: string, values: readonly number[]): RawTensor => ({
    dtype,
    shape: [values.length],
    bytes: Uint8Array.from(values),
  });

  it("reads every type of floats", async () => {
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

  it("reads doubles and whole numbers of every size", async () => {
    const of = (dtype: string, array: ArrayBufferView): RawTensor => ({
      dtype,
      shape: [2],
      bytes: new Uint8Array(array.buffer),
    });
    const { weights } = await open({
      i64: of("I64", BigInt64Array.of(16n, -(2n ** 40n))),
      u64: of("U64", BigUint64Array.of(16n, 2n ** 60n)),
      f64: of("F64", Float64Array.of(0.1, -1e300)),
      i32: of("I32", Int32Array.of(16, -5)),
      u32: of("U32", Uint32Array.of(16, 2 ** 32 - 1)),
      i16: of("I16", Int16Array.of(16, -5)),
      u16: of("U16", Uint16Array.of(16, 65535)),
      i8: of("I8", Int8Array.of(16, -5)),
      u8: of("U8", Uint8Array.of(16, 255)),
      bool: of("BOOL", Uint8Array.of(0, 1)),
    });
    const values = Object.fromEntries(
      await Promise.all([...weights].map(async ([key, weight]) => [key, [...(await readValues(weight))]])),
    );
    assert.deepEqual(values, {
      i64: [16, -(2 ** 40)],
      u64: [16, 2 ** 60],
      f64: [0.1, -1e300],
      i32: [16, -5],
      u32: [16, 2 ** 32 - 1],
      i16: [16, -5],
      u16: [16, 65535],
      i8: [16, -5],
      u8: [16, 255],
      bool: [0, 1],
    });
  });

  it("refuses large weights and files that have shrunk", async () => {
    const file = await open({ large: f32([2 ** 18 + 1]), last: f32([4]) });
    await refuses(
      readValues(file.weights.get("large")!),
      "model.invalid",
      /"v\.safetensors": expected tensor "large" of at most 1048576 bytes/,
    );
    truncateSync(file.path, file.bytes - 4);
    await refuses(readValues(file.weights.get("last")!), "model.invalid", /expected tensor "last" of \d+ bytes/);
    const gone = { ...file.weights.get("last")!, file: join(folder(), "none") };
    await refuses(readValues(gone), "file.read-failed", /ENOENT/);
  });
});

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
    await refuses(new HalfWeights(weights).find(), "file.not-found", /"w\.safetensors" no longer exists/);
  });
});
