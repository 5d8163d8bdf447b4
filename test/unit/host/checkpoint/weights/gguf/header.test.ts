import assert from "node:assert/strict";
import { LatentkitError } from "latentkit";
import { type GgufHeader, ggufHeader, MORE } from "#src/host/checkpoint/weights/gguf/header.js";
import { refuses } from "../../../../../helpers/errors.js";
import {
  type GgufContents,
  type GgufValue,
  ggufBytes,
  text,
  textValue,
  u32,
  u64,
} from "../../../../../helpers/models/gguf-file.js";

const read = (bytes: Uint8Array, fileBytes = bytes.length): GgufHeader => ggufHeader("m.gguf", bytes, fileBytes);
const single = (
  shape: readonly number[],
  type = 0,
  bytes = 4 * shape.reduce((product, side) => product * side, 1),
) => ({
  type,
  shape,
  bytes: new Uint8Array(bytes),
});
const list = (element: number, count: number | bigint, bytes: Uint8Array): GgufValue => [
  9,
  Buffer.concat([u32(element), u64(count), bytes]),
];

describe("ggufHeader", () => {
  it("reads tensors of all types with their sides reversed and their places, and pairs of all types", () => {
    const contents: GgufContents = {
      pairs: {
        "general.architecture": textValue("flux"),
        "a.u8": [0, Uint8Array.of(200)],
        "a.i8": [1, Uint8Array.of(200)],
        "a.i16": [3, Uint8Array.of(0xff, 0xff)],
        "a.f32": [6, u32(0x3fc00000)],
        "a.bool": [7, Uint8Array.of(1)],
        "a.u64": [10, u64(2n ** 64n - 1n)],
        "a.f64": [12, u64(0x3ff8000000000000n)],
        "a.texts": list(8, 2, Buffer.concat([text("x"), text("yz")])),
        "a.lists": list(9, 2, Buffer.concat([u32(0), u64(1), Uint8Array.of(1), u32(5), u64(0)])),
        "a.long": textValue("x".repeat(5000)),
        __proto__x: textValue("own"),
      },
      tensors: { a: single([3, 4]), b: single([2, 64], 2, 72), c: single([5]), d: single([], 0, 4) },
    };
    const bytes = ggufBytes(contents);
    const { metadata, entries } = read(bytes);
    assert.deepEqual(metadata, {
      "general.architecture": "flux",
      "a.u8": "200",
      "a.i8": "-56",
      "a.i16": "-1",
      "a.f32": "1.5",
      "a.bool": "true",
      "a.u64": "18446744073709551615",
      "a.f64": "1.5",
      __proto__x: "own",
    });
    const start = bytes.length - 64 - 96 - 32 - 32;
    assert.deepEqual(
      [...entries],
      [
        ["a", { dtype: "F32", shape: [3, 4], from: start, to: start + 48 }],
        ["b", { dtype: "Q4_0", shape: [2, 64], from: start + 64, to: start + 136 }],
        ["c", { dtype: "F32", shape: [5], from: start + 160, to: start + 180 }],
        ["d", { dtype: "F32", shape: [], from: start + 192, to: start + 196 }],
      ],
    );
  });

  it("gives a tensor the shape that it had before it was reshaped", () => {
    const shape = list(5, 4, Buffer.concat([u32(2), u32(4), u32(8), u32(4)]));
    const tensors = { w: single([1, 256], 12, 144) };
    const { entries, metadata } = read(ggufBytes({ pairs: { "comfy.gguf.orig_shape.w": shape }, tensors }));
    assert.deepEqual(entries.get("w")!.shape, [2, 4, 8, 4]);
    assert.deepEqual(metadata, {});
  });

  it("reads empty tensors, which are marks, at the place of others", () => {
    const mark = single([0]);
    const bytes = ggufBytes({ tensors: { before: mark, a: single([4]), after: { ...mark, offset: 0 }, end: mark } });
    const shapes = [...read(bytes).entries].map(([name, { shape, from, to }]) => [name, shape, to - from]);
    assert.deepEqual(shapes, [
      ["before", [0], 0],
      ["a", [4], 16],
      ["after", [0], 0],
      ["end", [0], 0],
    ]);
  });

  it("counts offsets from a multiple of the file's own alignment", () => {
    const contents = { pairs: { "general.alignment": [4, u32(256)] }, tensors: { a: single([1]) } } as const;
    const bytes = ggufBytes(contents, 256);
    assert.equal(read(bytes).entries.get("a")!.from, 256);
  });

  it("asks for more of a header that goes on behind the bytes that are there", () => {
    const bytes = ggufBytes({ pairs: { a: textValue("value") }, tensors: { a: single([1]) } });
    for (let length = 0; length < bytes.length - 64; length++)
      assert.throws(
        () => read(bytes.subarray(0, length), bytes.length),
        (error) => error === MORE,
      );
  });

  const unsupported: readonly (readonly [title: string, bytes: Uint8Array, pattern: RegExp])[] = [
    ["version 1", ggufBytes({ version: 1 }), /a GGUF file of version 2 or 3, received 1/],
    ["version 4", ggufBytes({ version: 4 }), /received 4/],
    ["other bytes of a number", ggufBytes({ version: 0x03000000 }), /received 50331648/],
    ["a type by its name", ggufBytes({ tensors: { w: single([256], 18, 98) } }), /"w" of a type .*, received IQ3_XXS/],
    ["a type by its number", ggufBytes({ tensors: { w: single([256], 77, 98) } }), /received type 77/],
  ];
  for (const [title, bytes, pattern] of unsupported)
    it(`refuses ${title}`, () => refuses(() => read(bytes), "model.unsupported", pattern));

  const deep = (depth: number): Buffer =>
    depth === 0 ? Buffer.concat([u32(0), u64(0)]) : Buffer.concat([u32(9), u64(1), deep(depth - 1)]);
  const head = (tensors: bigint, pairs: bigint) =>
    Buffer.concat([Buffer.from("GGUF"), u32(3), u64(tensors), u64(pairs)]);
  const sides = (...values: (number | bigint)[]): Buffer =>
    Buffer.concat([head(1n, 0n), text("w"), u32(values.length), ...values.map(u64), u32(0), u64(0), Buffer.alloc(64)]);
  const two = (offset: number) => ggufBytes({ tensors: { a: single([16]), b: { ...single([16]), offset } } });
  const invalid: readonly (readonly [title: string, bytes: Uint8Array, pattern: RegExp])[] = [
    ["too many tensors", head(65_537n, 0n), /at most 65536 tensors in a header, received 65537/],
    [
      "more tensors than a number has",
      head(2n ** 63n, 0n),
      /a number of tensors below 2\^53, received 9223372036854775808/,
    ],
    ["too many pairs", head(0n, 65_537n), /at most 65536 pairs/],
    ["tensors that are not there", head(60_000n, 0n), /within the file/],
    ["a text longer than the file", Buffer.concat([head(0n, 1n), u64(50_000)]), /within the file/],
    ["a key beyond its bound", Buffer.concat([head(0n, 1n), u64(2n ** 50n)]), /a key of at most 65535 bytes/],
    ["a key that is not UTF-8", Buffer.concat([head(0n, 1n), u64(1), Uint8Array.of(0xff), u32(0), u32(0)]), /in UTF-8/],
    [
      "an unknown type of value",
      ggufBytes({ pairs: { a: [13, u64(0)] } }),
      /of "a" of a type from 0 to 12, received type 13/,
    ],
    ["a list longer than the file", ggufBytes({ pairs: { a: list(0, 2n ** 52n, Buffer.of()) } }), /within the file/],
    ["a product beyond 2^53", ggufBytes({ pairs: { a: list(10, 2n ** 52n, Buffer.of()) } }), /within the file/],
    ["texts that are not there", ggufBytes({ pairs: { a: list(8, 2n ** 52n, Buffer.of()) } }), /within the file/],
    ["lists in too many lists", ggufBytes({ pairs: { a: [9, deep(9)] } }), /lists in "a" at most 4 deep/],
    [
      "a key twice",
      Buffer.concat([head(0n, 2n), text("a"), u32(0), Uint8Array.of(1), text("a"), u32(0), Uint8Array.of(1)]),
      /each key once, received "a" twice/,
    ],
    [
      "a name beyond its bound",
      ggufBytes({ tensors: { ["n".repeat(1025)]: single([1]) } }),
      /a tensor's name of at most 1024/,
    ],
    ["five sides", sides(1, 1, 1, 1, 1), /"w" of at most 4 sides, received 5/],
    ["sides whose product is too large", sides(2 ** 30, 2 ** 30), /of less than 2\^53 values, received sides \[/],
    ["sides whose product is a small number modulo 2^64", sides(2n ** 33n, 2n ** 33n), /less than 2\^53 values/],
    ["a side beyond 2^53", sides(2n ** 60n), /a side of a tensor below 2\^53/],
    ["more values than the file has", sides(4000), /to end within the file's/],
    [
      "half a block",
      ggufBytes({ tensors: { w: single([2, 48], 2, 54) } }),
      /of Q4_0 with rows of a multiple of 32 values, received 48/,
    ],
    ["an offset behind the file", ggufBytes({ tensors: { w: { ...single([1]), offset: 2 ** 40 } } }), /to end within/],
    ["an offset between two multiples", two(33), /"b" at a multiple of 32 bytes, received 33/],
    ["tensors that overlap", two(32), /"b" to begin behind the one before/],
    ["an alignment that is not a power of two", ggufBytes({ pairs: { "general.alignment": [4, u32(24)] } }), /"24"/],
    ["an alignment of zero", ggufBytes({ pairs: { "general.alignment": [4, u32(0)] } }), /a power of two/],
    ["an alignment that is a text", ggufBytes({ pairs: { "general.alignment": textValue("x") } }), /a power of two/],
    [
      "a shape of another size",
      ggufBytes({ pairs: { "comfy.gguf.orig_shape.w": list(5, 1, u32(3)) }, tensors: { w: single([4]) } }),
      /of 4 values, as it has sides for, received shape \[3\]/,
    ],
    [
      "a shape of negative sides",
      ggufBytes({ pairs: { "comfy.gguf.orig_shape.w": list(5, 2, Buffer.concat([u32(-1 >>> 0), u32(-4 >>> 0)])) } }),
      /received \[-1, -4\]/,
    ],
    [
      "a shape that is a text",
      ggufBytes({ pairs: { "comfy.gguf.orig_shape.w": textValue("4") } }),
      /a list of 1 to 8 sides/,
    ],
    [
      "a shape of too many sides",
      ggufBytes({ pairs: { "comfy.gguf.orig_shape.w": list(5, 2n ** 40n, Buffer.of()) } }),
      /received 1099511627776 sides/,
    ],
  ];
  for (const [title, bytes, pattern] of invalid)
    it(`refuses ${title}`, () => refuses(() => read(bytes), "model.invalid", pattern));

  it("answers ten thousand damaged headers with typed errors alone", () => {
    const whole = ggufBytes({
      pairs: {
        "general.architecture": textValue("flux"),
        "general.alignment": [4, u32(32)],
        "a.texts": list(8, 2, Buffer.concat([text("x"), text("yz")])),
        "comfy.gguf.orig_shape.b": list(5, 2, Buffer.concat([u32(2), u32(64)])),
      },
      tensors: { a: single([3, 4]), b: single([2, 64], 2, 72), c: single([5], 30, 10) },
    });
    let state = 42;
    const random = (below: number): number => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return state % below;
    };
    const extreme = [0, 1, 0x7f, 0x80, 0xff];
    const seen = new Set<string>();
    for (let round = 0; round < 10_000; round++) {
      const bytes = Buffer.from(whole.subarray(0, random(8) === 0 ? random(whole.length) : whole.length));
      for (let change = random(4); change >= 0 && bytes.length > 0; change--)
        bytes[random(bytes.length)] = random(2) === 0 ? random(256) : extreme[random(extreme.length)]!;
      try {
        for (const { from, to } of read(bytes).entries.values())
          assert.ok(from >= 0 && from <= to && to <= bytes.length);
        seen.add("read");
      } catch (error) {
        assert.ok(error instanceof LatentkitError, String(error));
        seen.add(error.code);
      }
    }
    assert.deepEqual([...seen].sort(), ["model.invalid", "model.unsupported", "read"]);
  });
});
