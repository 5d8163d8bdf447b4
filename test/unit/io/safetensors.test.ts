import assert from "node:assert/strict";
import { LatentkitError, randn, Tensor } from "latentkit";
import { readSafetensors, toTensor, writeSafetensors } from "#src/io/safetensors.js";
import { refuses } from "../../helpers/errors.js";
import { growsLinearly } from "../../helpers/growth.js";
import { assertSameBits } from "../../helpers/tensor/bits.js";

/** A file of this header and these bytes of values. */
function fileOf(header: unknown, values: Uint8Array | number = 0): Uint8Array {
  const text = Buffer.from(typeof header === "string" ? header : JSON.stringify(header), "latin1");
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([length, text, typeof values === "number" ? Buffer.alloc(values) : values]);
}

const entry = (shape: unknown, offsets: unknown, dtype: unknown = "F32") => ({ dtype, shape, data_offsets: offsets });
const bits = (words: number[]) => new Uint8Array(Uint16Array.from(words).buffer);

describe("safetensors", () => {
  it("reads what it has written, values at multiples of 8 bytes", () => {
    const tensors = { a: randn([2, 3], { seed: 1 }), empty: Tensor.zeros([0]), "ü.weight": Tensor.full([], -0) };
    for (const metadata of [[], [["prompt", '{"1": "é"}']]] as [string, string][][]) {
      const bytes = writeSafetensors(tensors, metadata);
      const file = readSafetensors(bytes);
      assert.deepEqual(file.metadata, Object.fromEntries(metadata));
      assert.deepEqual([...file.tensors.keys()], Object.keys(tensors));
      for (const [name, tensor] of Object.entries(tensors)) assertSameBits(toTensor(file.tensors.get(name)!), tensor);
      assert.equal(file.tensors.get("a")!.bytes.byteOffset % 8, 0);
      assert.equal(file.tensors.get("a")!.bytes.buffer, bytes.buffer);
    }
  });

  it("reads a header of 65,536 tensors, and refuses one of more with count and bound, before it is parsed", async () => {
    const of = (count: number, entry: string) =>
      `{"__metadata__":{"a":"\\"},{,\\\\"},${Array.from({ length: count }, (_, i) => `"${i}":${entry}`).join(",")}}`;
    const empty = '{"dtype":"F32","shape":[1,1,1,1,0],"data_offsets":[0,0]}';
    assert.equal(readSafetensors(fileOf(of(65_536, empty))).tensors.size, 65_536);
    const most = "expected at most 65536 tensors in a header, received 70001\\.$";
    await refuses(() => readSafetensors(fileOf(of(70_000, empty))), "safetensors.invalid", new RegExp(most));
    // no JSON behind the count: what is refused was not parsed
    await refuses(
      () => readSafetensors(fileOf(`{${'"a":1,'.repeat(1e6)}`)),
      "safetensors.invalid",
      /received 1000001\.$/,
    );
    const shape = `{"a":{"shape":[${"1,".repeat(1e6)}`;
    await refuses(
      () => readSafetensors(fileOf(shape)),
      "safetensors.invalid",
      /at most 589824 values .* received 1000001\.$/,
    );
  });

  it("refuses a key of more than 65,535 bytes with its length, but no longer text", async () => {
    const [most, long] = ["x".repeat(65_535), "x".repeat(65_536)];
    const file = readSafetensors(
      fileOf(`{"__metadata__":{"${most}" :"${long}\\":"},"${most}":${JSON.stringify(entry([0], [0, 0]))}}`),
    );
    assert.deepEqual([[...file.tensors.keys()], Object.keys(file.metadata)], [[most], [most]]);
    assert.deepEqual(Object.values(file.metadata), [`${long}":`]);
    for (const header of [`{"${long}":{}}`, `{"a":{"${long}" \n\t:0}}`])
      await refuses(
        () => readSafetensors(fileOf(header)),
        "safetensors.invalid",
        /expected keys of at most 65535 bytes in a header, received 65536\.$/,
      );
  });

  it("refuses hostile headers of 32 MiB in linear time @alone", async () => {
    const hostile = [
      (n: number) => `{"__metadata__":{"a":"${"\\n".repeat(n)}`,
      (n: number) => `{"__metadata__":{"a":"${"\\n".repeat(n)}"}}`,
      (n: number) => `{"__metadata__":{"a":"${"\\".repeat(n)}`,
      (n: number) => `{"__metadata__":{"a":"${'\\\\"'.repeat(n)}`,
      (n: number) => `${"\n".repeat(n)}x`,
      (n: number) => `${"[".repeat(n)}`,
      (n: number) => `${'"'.repeat(n)}`,
      (n: number) => "\0".repeat(n),
    ];
    for (const make of hostile) {
      await growsLinearly(
        2 ** 18,
        (n) => fileOf(make(n)),
        (file) => {
          try {
            readSafetensors(file);
          } catch (error) {
            assert.ok(error instanceof LatentkitError);
          }
        },
      );
    }
  });

  it("reads a file at an odd address of a larger buffer", () => {
    const a = randn([5], { seed: 2 });
    const bytes = writeSafetensors({ a });
    const shifted = new Uint8Array(bytes.length + 3);
    shifted.set(bytes, 3);
    assertSameBits(toTensor(readSafetensors(shifted.subarray(3)).tensors.get("a")!), a);
  });

  it("converts halves exactly", () => {
    const half = [0x0000, 0x8000, 0x0001, 0x03ff, 0x0400, 0x3c00, 0xc000, 0x3555, 0x7bff, 0x7c00, 0xfc00, 0x7e01];
    const values = [0, -0, 2 ** -24, 1023 * 2 ** -24, 2 ** -14, 1, -2, 0.333251953125, 65504];
    const file = readSafetensors(fileOf({ a: entry([12], [0, 24], "F16") }, bits(half)));
    const expected = [...values, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN];
    assertSameBits(toTensor(file.tensors.get("a")!), Tensor.from(expected, [12]));
  });

  it("converts bfloat16 exactly", () => {
    const brain = [0x0000, 0x8000, 0x3f80, 0xc040, 0x0001, 0x7f80, 0x7fc0];
    const values = [0, -0, 1, -3, 2 ** -133, Number.POSITIVE_INFINITY, Number.NaN];
    const file = readSafetensors(fileOf({ a: entry([7], [0, 14], "BF16") }, bits(brain)));
    assertSameBits(toTensor(file.tensors.get("a")!), Tensor.from(values, [7]));
  });

  it("reads tensors in any order of the header", () => {
    const values = new Uint8Array(Float32Array.of(1, 2, 3).buffer);
    const file = readSafetensors(fileOf({ b: entry([2], [4, 12]), a: entry([1], [0, 4]) }, values));
    assertSameBits(toTensor(file.tensors.get("a")!), Tensor.from([1], [1]));
    assertSameBits(toTensor(file.tensors.get("b")!), Tensor.from([2, 3], [2]));
  });

  it("refuses a type it cannot convert, and a tensor beyond 2^30 values", async () => {
    const bytes = readSafetensors(fileOf({ a: entry([2], [0, 2], "U8") }, 2)).tensors.get("a")!;
    await refuses(() => toTensor(bytes), "safetensors.invalid", /expected F32, F16 or BF16, received U8/);
    const large = { dtype: "F32", shape: [2 ** 20, 2 ** 20], bytes: new Uint8Array(0) } as const;
    await refuses(() => toTensor(large), "tensor.too-large");
  });

  const hostile: Record<string, [Uint8Array, RegExp]> = {
    "an empty file": [new Uint8Array(0), /at least 8 bytes/],
    "a header longer than the file": [fileOf({}).subarray(0, 9), /at most 1 bytes, received a length of 2/],
    "a length of 2^64 - 1": [new Uint8Array(16).fill(255), /received a length of 18446744073709551615/],
    "no JSON": [fileOf("{"), /header is not valid JSON \([^()]+[^.]\)\.$/],
    "bytes that are not UTF-8": [fileOf('{"\xff": 1}'), /UTF-8/],
    "a list as header": [fileOf([]), /an object as header/],
    "deep nesting": [fileOf("[".repeat(1e5)), /header is not valid JSON/],
    "a name twice": [fileOf('{"a": 1, "a": 2}'), /duplicate key/],
    "a prototype key": [fileOf('{"__proto__": 1}'), /is not allowed/],
    "a number for a tensor": [fileOf({ a: 5 }), /tensor "a" of a type such as F32/],
    "an unknown type": [fileOf({ a: entry([1], [0, 4], "toString") }, 4), /of a type such as F32/],
    "a side below 0": [fileOf({ a: entry([-1], [0, 4]) }, 4), /list of sizes/],
    "a fraction as side": [fileOf({ a: entry([1.5], [0, 6]) }, 6), /list of sizes/],
    "a text for the sides": [fileOf({ a: entry("1", [0, 4]) }, 4), /list of sizes/],
    "three offsets": [fileOf({ a: entry([1], [0, 4, 4]) }, 4), /a first and a last byte/],
    "an end before its start": [fileOf({ a: entry([0], [4, 0]) }, 4), /a first and a last byte/],
    "offsets beyond the file": [fileOf({ a: entry([2], [0, 8]) }, 4), /cut off: its tensors need \d+ bytes/],
    "sides that need more bytes": [fileOf({ a: entry([2], [0, 4]) }, 4), /with 8 bytes for its shape, received 4/],
    "sides that overflow": [fileOf({ a: entry([2 ** 53 - 1, 2 ** 53 - 1], [0, 4]) }, 4), /bytes for its shape/],
    "an overlap": [fileOf({ a: entry([2], [0, 8]), b: entry([1], [4, 8]) }, 8), /"b" to begin at byte \d+/],
    "a gap": [fileOf({ a: entry([1], [0, 4]), b: entry([1], [8, 12]) }, 12), /"b" to begin at byte/],
    "bytes after the last tensor": [fileOf({ a: entry([1], [0, 4]) }, 5), /a file of/],
    "metadata of numbers": [fileOf({ __metadata__: { a: 1 } }), /object of texts/],
    "metadata as a list": [fileOf({ __metadata__: ["a"] }), /object of texts/],
  };
  for (const [what, [bytes, message]] of Object.entries(hostile))
    it(`refuses ${what}`, async () => {
      await refuses(() => readSafetensors(bytes), "safetensors.invalid", /^Safetensors: /, message);
    });
});
