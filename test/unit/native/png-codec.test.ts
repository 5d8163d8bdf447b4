import assert from "node:assert/strict";
import { deflateSync, inflateSync } from "node:zlib";
import { PNG } from "pngjs";
import type { DecodedPng } from "#src/native/bindings.js";
import { loadNative } from "#src/native/load.js";
import { pngChunks, pngText } from "../../helpers/png/png-chunks.js";
import { assemble, makePng } from "../../helpers/png/png-file.js";
import { seededInts } from "../../helpers/seeded.js";

const native = loadNative();
const MAX_PIXELS = 1 << 20;

describe("native PNG encoder", () => {
  for (const channels of [1, 2, 3, 4]) {
    it(`writes ${channels} channels that pngjs reads back`, async () => {
      const random = seededInts(channels);
      for (const [width, height] of [
        [1, 1],
        [7, 5],
        [16, 3],
        [65, 33],
      ] as const) {
        const pixels = Uint8Array.from({ length: width * height * channels }, (_, i) => (i * 3 + random(8)) & 255);
        const file = Buffer.from(await native.encodePng(pixels, width, height, channels, 4, []));
        const read = PNG.sync.read(file);
        assert.deepEqual([read.width, read.height], [width, height]);
        assert.deepEqual(new Uint8Array(read.data), toRgba({ channels, bitDepth: 8, data: pixels }));
      }
    });
  }

  it("converts floats as floatToByte does", async () => {
    const floats = Float32Array.from([0, 1, 0.5, -1, 2, Number.NaN, 0.999, 1 / 255, 0.2, 0.7, 0.3, 0.1]);
    const bytes = new Uint8Array(floats.length);
    native.floatToByte(bytes, floats);
    const file = await native.encodePng(floats, 2, 2, 3, 4, []);
    assert.deepEqual(file, await native.encodePng(bytes, 2, 2, 3, 4, []));
  });

  it("puts text chunks before the data, in order", async () => {
    const text: [string, string][] = [
      ["prompt", '{"1": {"seed": 18446744073709551615}}'],
      ["workflow", "{}"],
      ["café", "ü"],
    ];
    const file = Buffer.from(await native.encodePng(new Uint8Array(3), 1, 1, 3, 4, text));
    assert.deepEqual(pngText(file), text);
    const types = pngChunks(file).map(({ type }) => type);
    assert.deepEqual(types, ["IHDR", "tEXt", "tEXt", "tEXt", "IDAT", "IEND"]);
    assert.deepEqual((await native.decodePng(file, MAX_PIXELS)).text, text);
  });

  it("writes one zlib stream of level 4 that zlib inflates to filtered rows", async () => {
    const random = seededInts(11);
    for (const [width, height, range] of [
      [1, 1, 256],
      [3, 700, 2],
      [333, 217, 6],
      [40000, 2, 256],
      [500, 301, 1],
    ] as const) {
      const pixels = Uint8Array.from({ length: width * height * 3 }, () => random(range));
      const file = Buffer.from(await native.encodePng(pixels, width, height, 3, 4, []));
      const data = pngChunks(file).find(({ type }) => type === "IDAT")!.data;
      assert.equal(data.readUInt16BE(0), 0x785e);
      assert.equal(inflateSync(data).length, height * (width * 3 + 1));
      assert.deepEqual((await native.decodePng(file, MAX_PIXELS)).data, pixels);
    }
  });

  it("is never larger than zlib at level 4", async () => {
    const random = seededInts(12);
    const [width, height] = [256, 256];
    const glyphs = Array.from({ length: 8 }, () => Array.from({ length: 64 }, () => (random(3) === 0 ? 0 : 255)));
    const line = Array.from({ length: (width / 8) * (height / 8) }, () => glyphs[random(8)]!);
    const kinds: Record<string, (x: number, y: number, c: number) => number> = {
      natural: (x, y, c) => 128 + 60 * Math.sin(x / 31 + c) * Math.cos(y / 23) + random(5) + random(5),
      noise: () => random(256),
      text: (x, y) => line[(y >> 3) * (width / 8) + (x >> 3)]![(y & 7) * 8 + (x & 7)]!,
      flat: (_x, _y, c) => 40 * c,
      gradient: (x, y, c) => (x * (c + 1) + y) >> 2,
    };
    for (const [kind, value] of Object.entries(kinds)) {
      const pixels = Uint8Array.from({ length: width * height * 3 }, (_, i) =>
        value(Math.floor(i / 3) % width, Math.floor(i / (3 * width)), i % 3),
      );
      const file = Buffer.from(await native.encodePng(pixels, width, height, 3, 4, []));
      const data = pngChunks(file).find(({ type }) => type === "IDAT")!.data;
      const zlibs = deflateSync(inflateSync(data), { level: 4, memLevel: 9 });
      assert.ok(data.length <= zlibs.length, `${kind}: ${data.length} bytes, zlib ${zlibs.length}`);
    }
  });

  it("takes a copy: what happens to the pixels after the call does not matter", async () => {
    const pixels = new Uint8Array(300 * 300 * 3).fill(7);
    const expected = await native.encodePng(pixels, 300, 300, 3, 4, []);
    const pending = native.encodePng(pixels, 300, 300, 3, 4, []);
    pixels.fill(200);
    structuredClone(pixels.buffer, { transfer: [pixels.buffer] });
    assert.deepEqual(await pending, expected);
  });

  it("gives memory that can be transferred", async () => {
    const file = await native.encodePng(new Uint8Array(3), 1, 1, 3, 4, []);
    structuredClone(file, { transfer: [file.buffer as ArrayBuffer] });
    assert.equal(file.byteLength, 0);
  });

  it("gives the same bytes with every instruction set, thread count and order of calls", async () => {
    const pixels = Uint8Array.from({ length: 200 * 100 * 3 }, (_, i) => (i * i) >> 9);
    const before = { isa: native.isa(), threads: native.threads() };
    const files: Promise<Uint8Array>[] = [];
    try {
      for (const isa of native.isas())
        for (const threads of [1, 2, 7]) {
          native.setIsa(isa);
          native.setThreads(threads);
          files.push(native.encodePng(pixels, 200, 100, 3, 4, []));
        }
      const [first, ...others] = await Promise.all(files);
      for (const other of others) assert.deepEqual(other, first);
    } finally {
      native.setIsa(before.isa);
      native.setThreads(before.threads);
    }
  });

  it("refuses what PNG cannot hold", () => {
    const encode = (pixels: Uint8Array, width: number, channels = 3, level = 4, text: [string, string][] = []) =>
      native.encodePng(pixels, width, 1, channels, level, text);
    assert.throws(() => encode(new Uint8Array(5), 2), /"pixels": expected 6 elements, received 5/);
    assert.throws(() => encode(new Uint8Array(0), 0), /"width"/);
    assert.throws(() => encode(new Uint8Array(5), 1, 5), /"channels"/);
    assert.throws(() => encode(new Uint8Array(3), 1, 3, 10), /"level"/);
    assert.throws(() => encode(new Uint8Array(3), 1, 3, 1.5), /"level"/);
    assert.throws(() => encode(new Uint8Array(3), 1, 3, 4, [["", "x"]]), /"text\[0\]\[0\]"/);
    assert.throws(() => encode(new Uint8Array(3), 1, 3, 4, [["k".repeat(80), "x"]]), /"text\[0\]\[0\]"/);
    assert.throws(() => encode(new Uint8Array(3), 1, 3, 4, [["k", "猫"]]), /"text\[0\]\[1\]"/);
    assert.throws(() => encode(new Uint8Array(3), 1, 3, 4, [["k", "a\0b"]]), /"text\[0\]\[1\]"/);
    const memory = new Uint8Array(native.pngBound(1, 1, 3, 4));
    const here = (out: Uint8Array, pixels: Uint8Array, width = 1) =>
      native.encodePngHere(out, pixels, width, 1, 3, 4, []);
    assert.ok(here(memory, new Uint8Array(3)) <= memory.length);
    assert.throws(() => here(memory, new Uint8Array(5), 2), /"pixels": expected 6 elements, received 5/);
    assert.throws(() => here(memory.subarray(0, 60), new Uint8Array(3)), { status: "no-space" });
    assert.throws(() => here(memory, memory.subarray(0, 3)), /"pixels"/);
    assert.equal(native.pngBound(2 ** 31 - 1, 2 ** 31 - 1, 4, 4), 0);
  });
});

describe("native PNG decoder", () => {
  for (const [colour, name] of [
    [0, "grey"],
    [2, "RGB"],
    [3, "palette"],
    [4, "grey and alpha"],
    [6, "RGBA"],
  ] as const) {
    for (const depth of [1, 2, 4, 8, 16].filter((bits) => fits(colour, bits))) {
      it(`reads ${name} of ${depth} bits as pngjs does, plain and interlaced, with and without tRNS`, async () => {
        const random = seededInts(colour * 100 + depth);
        const palette = colour === 3 ? Uint8Array.from({ length: 3 << depth }, () => random(256)) : undefined;
        // few different samples, so that the transparent one occurs
        const narrow = (n: number) => (n === 256 && depth >= 8 && colour !== 3 ? random(2) * 255 : random(n));
        const transparency = { 0: depth === 16 ? [255, 255] : [0, 1], 2: [0, 0, 0, 0, 0, 0], 3: [7, 99] }[colour as 0];
        for (const interlaced of [false, true])
          for (const alpha of transparency ? [undefined, Uint8Array.from(transparency)] : [undefined])
            for (const [width, height] of [
              [1, 1],
              [5, 3],
              [19, 11],
            ] as const) {
              const plan = { width, height, depth, colour, interlaced, palette, transparency: alpha, random: narrow };
              const file = makePng(plan);
              const decoded = await native.decodePng(file, MAX_PIXELS);
              const expected = PNG.sync.read(file, { skipRescale: depth === 16 });
              assert.deepEqual([decoded.width, decoded.height], [width, height]);
              assert.equal(decoded.bitDepth, depth === 16 ? 16 : 8);
              assert.equal(decoded.channels, [1, 0, 3, 3, 2, 0, 4][colour]! + (alpha ? 1 : 0));
              const rgba = toRgba(decoded);
              // pngjs blackens the one transparent colour; the format gives it alpha 0 and keeps its samples
              if (colour !== 3 && alpha)
                for (let i = 0; i < rgba.length; i += 4) if (rgba[i + 3] === 0) rgba.fill(0, i, i + 4);
              assert.deepEqual([...rgba], [...expected.data], JSON.stringify({ interlaced, alpha }));
            }
      });
    }
  }

  it("refuses damaged files with a reason and a status", async () => {
    const file = makePng({ width: 9, height: 9, depth: 8, colour: 2, random: seededInts(5) });
    const damaged = Buffer.from(file);
    damaged[file.length - 30]! ^= 1;
    await assert.rejects(native.decodePng(damaged, MAX_PIXELS), { message: /checksum/, status: "bad-file" });
    await assert.rejects(native.decodePng(file.subarray(0, -1), MAX_PIXELS), { status: "bad-file" });
    await assert.rejects(native.decodePng(new Uint8Array(0), MAX_PIXELS), { status: "bad-file" });
    await assert.rejects(native.decodePng(file, 80), { message: /more pixels/, status: "too-large" });
  });

  it("refuses a deflate bomb without allocating for it", async () => {
    const header = Buffer.alloc(13);
    header.writeUInt32BE(1 << 15, 0);
    header.writeUInt32BE(1 << 15, 4);
    header.set([16, 6, 0, 0, 0], 8);
    const chunks = (data: Uint8Array) =>
      assemble([
        ["IHDR", header],
        ["IDAT", data],
        ["IEND", Buffer.alloc(0)],
      ]);
    const before = process.memoryUsage().rss;
    const tiny = native.decodePng(chunks(deflateSync(Buffer.alloc(100))), 2 ** 31);
    await assert.rejects(tiny, { message: /data ends early/, status: "bad-file" });
    assert.ok(process.memoryUsage().rss - before < 64 << 20);
    header.writeUInt32BE(2, 0);
    header.writeUInt32BE(2, 4);
    const swollen = native.decodePng(chunks(deflateSync(Buffer.alloc(1 << 24))), MAX_PIXELS);
    await assert.rejects(swollen, { message: /more data than the picture needs/, status: "bad-file" });
  });

  it("reads compressed and international text", async () => {
    const chunks = pngChunks(Buffer.from(await native.encodePng(new Uint8Array(1), 1, 1, 1, 4, [])));
    const [header, data, end] = chunks.map(({ type, data }) => [type, data] as const);
    const text = [
      ["zTXt", Buffer.concat([Buffer.from("prompt\0\0"), deflateSync(Buffer.from("caf\xe9", "latin1"))])],
      ["iTXt", Buffer.from("workflow\0\0\0\0\0猫")],
      ["iTXt", Buffer.concat([Buffer.from("packed\0\u0001\0en\0\0"), deflateSync(Buffer.from("猫😀"))])],
    ] as const;
    const decoded = await native.decodePng(assemble([header!, ...text, data!, end!]), MAX_PIXELS);
    assert.deepEqual(decoded.text, [
      ["prompt", "café"],
      ["workflow", "猫"],
      ["packed", "猫😀"],
    ]);
  });

  it("refuses text that inflates past its limit", async () => {
    const chunks = pngChunks(Buffer.from(await native.encodePng(new Uint8Array(1), 1, 1, 1, 4, [])));
    const [header, data, end] = chunks.map(({ type, data }) => [type, data] as const);
    const bomb = Buffer.concat([Buffer.from("k\0\0"), deflateSync(Buffer.alloc((16 << 20) + 1, 120))]);
    const file = assemble([header!, ["zTXt", bomb], data!, end!]);
    await assert.rejects(native.decodePng(file, MAX_PIXELS), { message: /text is longer/, status: "too-large" });
  });
});

function fits(colour: number, depth: number): boolean {
  return colour === 0 || (colour === 3 ? depth <= 8 : depth >= 8);
}

/** The form in which pngjs gives every picture. */
function toRgba({
  channels,
  bitDepth,
  data,
}: Pick<DecodedPng, "channels" | "bitDepth" | "data">): Uint8Array | Uint16Array {
  const pixels = data.length / channels;
  const out = bitDepth === 16 ? new Uint16Array(pixels * 4) : new Uint8Array(pixels * 4);
  const opaque = bitDepth === 16 ? 0xffff : 255;
  for (let i = 0; i < pixels; i++) {
    const sample = (k: number) => data[i * channels + k]!;
    const colour = channels < 3 ? [sample(0), sample(0), sample(0)] : [sample(0), sample(1), sample(2)];
    out.set([...colour, channels % 2 === 0 ? sample(channels - 1) : opaque], i * 4);
  }
  return out;
}
