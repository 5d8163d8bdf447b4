import assert from "node:assert/strict";
import { deflateSync } from "node:zlib";
import { blake3 } from "@noble/hashes/blake3";
import { Tensor } from "latentkit";
import { PNG } from "pngjs";
import { decodePng, encodeHere, encodePng, imageTensor, pixelHash } from "#src/io/png/png.js";
import { readPngTexts } from "#src/io/png/text-chunks.js";
import { loadNative } from "#src/native/load.js";
import { clearPool, pooledBytes, returnMemory } from "#src/tensor/memory-pool.js";
import { refuses } from "../../../helpers/errors.js";
import { pngChunks, pngText } from "../../../helpers/png/png-chunks.js";
import { assemble } from "../../../helpers/png/png-file.js";

describe("io/png/png", () => {
  it("encodes tensors: times 255, clipped, truncated", async () => {
    const values = [0, 1, 0.999, -1, 2, Number.NaN, 0.5, 1 / 255, 0.1, 0.2, 0.3, 0.4];
    const file = await encodePng(Tensor.from(values, [1, 2, 2, 3]));
    const { data, width, height } = PNG.sync.read(file);
    assert.deepEqual([width, height], [2, 2]);
    const expected = values.map((v) => Math.trunc(Math.min(255, Math.max(0, Math.fround(Math.fround(v) * 255))) || 0));
    assert.deepEqual(
      [...data].filter((_, i) => i % 4 !== 3),
      expected,
    );
  });

  it("encodes 1 to 4 channels, as the decoder and an independent one read them", async () => {
    for (const channels of [1, 2, 3, 4]) {
      const data = Uint8Array.from({ length: 5 * 3 * channels }, (_, i) => (i * 37) % 256);
      const file = await encodePng({ data, width: 5, height: 3, channels });
      const decoded = await decodePng(file);
      assert.deepEqual([decoded.width, decoded.height, decoded.channels, decoded.bitDepth], [5, 3, channels, 8]);
      assert.deepEqual([...decoded.data], [...data]);
      assert.equal(pngChunks(file)[0]!.data[9], { 1: 0, 2: 4, 3: 2, 4: 6 }[channels]);
      assert.equal(PNG.sync.read(file).width, 5);
    }
    assert.equal((await decodePng(await encodePng(Tensor.zeros([2, 3])))).channels, 1);
    assert.equal((await decodePng(await encodePng(Tensor.zeros([2, 3, 4])))).channels, 4);
  });

  it("writes text before the pixels, in order, repeated keys included", async () => {
    const image = Tensor.zeros([1, 1, 3]);
    const file = await encodePng(image, { text: { prompt: "{}", clé: "é" } });
    assert.deepEqual(
      pngChunks(file).map(({ type }) => type),
      ["IHDR", "tEXt", "tEXt", "IDAT", "IEND"],
    );
    assert.deepEqual(pngText(file), [
      ["prompt", "{}"],
      ["clé", "é"],
    ]);
    assert.deepEqual((await decodePng(file)).text, { prompt: "{}", clé: "é" });
    const pairs: [string, string][] = [
      ["a", "1"],
      ["a", "2"],
      ["__proto__", "3"],
    ];
    const twice = await encodePng(image, { text: pairs });
    assert.deepEqual(pngText(twice), pairs);
    const { text } = await decodePng(twice);
    assert.deepEqual(Object.entries(text), [
      ["a", "2"],
      ["__proto__", "3"],
    ]);
  });

  it("encodes the same file in the calling thread, in a buffer of the pool", async () => {
    for (const [width, height, channels] of [
      [1, 1, 1],
      [3, 5, 2],
      [300, 200, 3],
      [64, 64, 4],
    ] as const) {
      const data = Uint8Array.from({ length: width * height * channels }, (_, i) => (i * i) >> 3);
      const image = { data, width, height, channels };
      const options = { text: { prompt: "{}".repeat(channels * 40_000), latentkit: "é" } };
      const here = encodeHere(image, options);
      assert.ok(here.equals(await encodePng(image, options)));
      clearPool();
      returnMemory(here.buffer);
      assert.equal(pooledBytes(), here.buffer.byteLength);
    }
    clearPool();
    const wrong = { data: new Uint8Array(11), width: 2, height: 2, channels: 3 };
    assert.throws(() => encodeHere(wrong), { code: "value.invalid" });
    const right = { ...wrong, data: new Uint8Array(12) };
    assert.throws(() => encodeHere(right, { text: { key: "a\0" } }), /without NUL/);
    const texts = { text: { prompt: "{}", key: "猫" } };
    assert.ok(encodeHere(right, texts).equals(await encodePng(right, texts)));
  });

  it("writes text beyond Latin-1 as iTXt, before the others", async () => {
    const file = await encodePng(Tensor.zeros([1, 1, 3]), { text: { prompt: "é", parameters: "狐, 🦊\nSteps: 20" } });
    assert.deepEqual(
      pngChunks(file).map(({ type }) => type),
      ["IHDR", "iTXt", "tEXt", "IDAT", "IEND"],
    );
    assert.deepEqual((await decodePng(file)).text, { prompt: "é", parameters: "狐, 🦊\nSteps: 20" });
    assert.equal(PNG.sync.read(file).width, 1);
  });

  it("writes 16 bits a sample, from tensors and from numbers, as the decoder and an independent one read them", async () => {
    for (const channels of [1, 2, 3, 4]) {
      const samples = Uint16Array.from({ length: 40 * 30 * channels }, (_, i) => (i * 2477) % 65536);
      const image = { data: samples, width: 40, height: 30, channels };
      const file = await encodePng(image, { text: { prompt: "{}" } });
      const decoded = await decodePng(file);
      assert.deepEqual([decoded.bitDepth, decoded.channels, decoded.text], [16, channels, { prompt: "{}" }]);
      assert.deepEqual(decoded.data, samples);
      assert.equal(pngChunks(file)[0]!.data[8], 16);
      const read = PNG.sync.read(file, { skipRescale: true }).data as unknown as Uint16Array;
      assert.equal(read[4 * 777], samples[channels * 777]);
      const tensor = Tensor.from(
        Float32Array.from(samples, (value) => value / 65535),
        [30, 40, channels],
      );
      assert.deepEqual(await encodePng(tensor, { text: { prompt: "{}" }, bitDepth: 16 }), file);
      const bytes = Buffer.from(samples.slice().buffer).swap16();
      const raw = { data: bytes, width: 40, height: 30, channels, bitDepth: 16 };
      assert.deepEqual(encodeHere(raw, { text: { prompt: "{}" } }), file);
    }
    const odd = Tensor.from([-1, 2, Number.NaN, 0.5], [1, 4]);
    assert.deepEqual([...(await decodePng(await encodePng(odd, { bitDepth: 16 }))).data], [0, 65535, 0, 32768]);
    await refuses(encodePng(odd, { bitDepth: 12 as 16 }), "usage.invalid", /bitDepth: expected 8 or 16, received 12/);
    const wrong = { data: new Uint8Array(3), width: 1, height: 1, channels: 3, bitDepth: 16 };
    await refuses(encodePng(wrong), "value.invalid", /expected 6 bytes for 1 x 1 x 3, received 3/);
  });

  it("refuses text that no chunk can hold", async () => {
    const image = Tensor.zeros([1, 1, 3]);
    for (const key of ["", "a".repeat(80), "工", "a\0", "a\n", "\u0085"]) {
      await refuses(encodePng(image, { text: { [key]: "x" } }), "value.invalid", /1 to 79/);
    }
    for (const value of ["a\0", 5 as unknown as string]) {
      await refuses(encodePng(image, { text: { key: value } }), "value.invalid", /without NUL/);
    }
  });

  it("refuses anything but an image", async () => {
    for (const shape of [[3], [0, 1, 3], [1, 0, 3], [1, 1, 5], [2, 1, 1, 3], [1, 1, 1, 1, 3]]) {
      await refuses(encodePng(Tensor.zeros(shape)), "tensor.bad-shape");
    }
    const data = new Uint8Array(12);
    await refuses(encodePng({ data, width: 2, height: 2, channels: 4 }), "value.invalid", /16 bytes/);
    await refuses(encodePng({ data, width: 2, height: 0, channels: 3 }), "value.out-of-range", /height/);
    await refuses(encodePng({ data, width: 2.5, height: 2, channels: 3 }), "value.out-of-range", /width/);
    await refuses(encodePng({ data, width: 2, height: 2, channels: 5 }), "value.out-of-range", /channels/);
    await refuses(encodePng(null as never), "value.invalid");
    await refuses(encodePng({ data: [1] as never, width: 1, height: 1, channels: 1 }), "value.invalid");
    for (const level of [-1, 10, 1.5, Number.NaN]) {
      await refuses(encodePng(Tensor.zeros([1, 1, 3]), { level }), "value.out-of-range", /level/);
    }
  });

  it("refuses broken files, and large ones before it allocates", async () => {
    const file = await encodePng(Tensor.zeros([4, 4, 3]));
    for (const bytes of [new Uint8Array(0), Buffer.from("GIF89a"), file.subarray(0, 20), file.subarray(0, 50)]) {
      await refuses(decodePng(bytes), "png.invalid", /^PNG: /);
    }
    const wrong = Buffer.from(file);
    wrong[wrong.length - 20]! ^= 1;
    await refuses(decodePng(wrong), "png.invalid");
    const huge = Buffer.from(file);
    huge.writeUInt32BE(100_000, 16);
    huge.writeUInt32BE(100_000, 20);
    await refuses(decodePng(huge), "png.too-large", /100000 x 100000/);
    await refuses(decodePng("x" as never), "png.invalid");
  });

  it("names a text that is too long, its length and the bound", async () => {
    const chunks = pngChunks(await encodePng(Tensor.zeros([4, 2, 3]))).map(({ type, data }) => [type, data] as const);
    const withTexts = (...texts: (readonly [string, Buffer])[]) => assemble([chunks[0]!, ...texts, ...chunks.slice(1)]);
    const long = Buffer.concat([Buffer.from("workflow\0"), Buffer.alloc(2e7, 97)]);
    const deflated = (length: number) =>
      ["zTXt", Buffer.concat([Buffer.from("workflow\0\0"), deflateSync(Buffer.alloc(length, 97))])] as const;
    const whole = deflated(2 ** 24);
    const cases: [Buffer, RegExp][] = [
      [withTexts(["tEXt", long]), /^PNG, text "workflow": expected at most 16777216 bytes, received 20000000\.$/],
      [withTexts(deflated(2 ** 24 + 1)), /^PNG, text "workflow": expected at most 16777216 bytes, received more\.$/],
      [
        withTexts(whole, whole, whole, whole, whole),
        /^PNG, text "workflow": expected at most 67108864 bytes in all texts together, received more\.$/,
      ],
    ];
    for (const [file, expected] of cases) {
      await refuses(decodePng(file), "png.too-large", expected);
      await refuses(() => readPngTexts(file), "png.too-large", expected);
    }
    assert.equal((await decodePng(withTexts(whole))).text.workflow?.length, 2 ** 24);
  });

  it("reads UTF-8 in chunks of Latin-1, as other programs write it", async () => {
    const chunks = pngChunks(await encodePng(Tensor.zeros([4, 2, 3]))).map(({ type, data }) => [type, data] as const);
    const entry = (key: string, text: Buffer) => Buffer.concat([Buffer.from(`${key}\0`), text]);
    const added = [
      ["tEXt", entry("utf8", Buffer.from("Füchse, 狐 🦊"))],
      ["tEXt", entry("latin", Buffer.from("Füchse", "latin1"))],
      ["zTXt", entry("deflated", Buffer.concat([Buffer.alloc(1), deflateSync(Buffer.from("Füchse, 狐"))]))],
    ] as const;
    const file = assemble([chunks[0]!, ...added, ...chunks.slice(1)]);
    const expected = { utf8: "Füchse, 狐 🦊", latin: "Füchse", deflated: "Füchse, 狐" };
    assert.deepEqual(readPngTexts(file), expected);
    assert.deepEqual((await decodePng(file)).text, expected);
    const alike = { parameters: "Ã¼" };
    assert.deepEqual(readPngTexts(await encodePng(Tensor.zeros([4, 2, 3]), { text: alike })), alike);
  });

  it("makes tensors of pictures: grey in colour, 16 bits as they are", async () => {
    const shapes: Record<number, number> = { 1: 3, 2: 4, 3: 3, 4: 4 };
    for (const channels of [1, 2, 3, 4]) {
      const data = Uint8Array.from({ length: 2 * channels }, (_, i) => i * 50);
      const tensor = imageTensor({ width: 2, height: 1, channels, bitDepth: 8, data, text: {} });
      assert.deepEqual([...tensor.shape], [1, 1, 2, shapes[channels]]);
      if (channels === 2)
        assert.deepEqual(
          [...tensor.data],
          [0, 0, 0, 50, 100, 100, 100, 150].map((v) => Math.fround(v / 255)),
        );
    }
    const deep = imageTensor({
      width: 1,
      height: 1,
      channels: 3,
      bitDepth: 16,
      data: new Uint16Array([0, 65535, 257]),
      text: {},
    });
    assert.deepEqual([...deep.data], [0, 1, Math.fround(257 / 65535)]);
  });

  it("does not hold the event loop @alone", async () => {
    // at the highest level, since a lower one may be done within one turn
    const image = Tensor.from(
      Float32Array.from({ length: 3 << 20 }, (_, i) => ((i * i) % 1021) / 1021),
      [1024, 1024, 3],
    );
    let turns = 0;
    let isEncoding = true;
    const countTurn = () => {
      turns++;
      if (isEncoding) setImmediate(countTurn);
    };
    setImmediate(countTurn);
    await Promise.all([1, 2, 3].map(() => encodePng(image, { level: 9 })));
    isEncoding = false;
    assert.ok(turns > 10, `${turns} turns`);
  });
});

/** The same by a library of others. */
function known(data: Uint8Array, width: number, height: number, channels: number): string {
  const header = Buffer.alloc(12);
  for (const [index, side] of [width, height, channels].entries()) header.writeUInt32BE(side, index * 4);
  return `blake3:${Buffer.from(blake3(Buffer.concat([header, data]))).toString("hex")}`;
}

describe("pixelHash", () => {
  const native = loadNative();
  const best = native.isa();
  const data = Uint8Array.from({ length: 24 }, (_, i) => i * 7);

  afterEach(() => native.setIsa(best));

  for (const isa of native.isas()) {
    it(`is BLAKE3 of width, height, channels and the samples, with ${isa}`, () => {
      native.setIsa(isa);
      const widths = [0, 1, 52, 53, 1011, 1012, 1013, 2036, 4096, 8180, 16_372, 16_373, 17_400, 40_001, 131_072];
      for (const width of widths) {
        for (const channels of [1, 2, 3, 4] as const) {
          const samples = Uint8Array.from({ length: width * channels }, (_, i) => (i * i) >> 3);
          const hash = pixelHash({ data: samples, width, height: 1, channels });
          assert.equal(hash, known(samples, width, 1, channels), `${width} x 1 x ${channels}`);
        }
      }
    });
  }

  it("distinguishes shapes of equal samples, and accepts a view of a buffer", () => {
    const hashes = new Set<string>();
    for (const [width, height, channels] of [
      [4, 2, 3],
      [2, 4, 3],
      [6, 4, 1],
      [12, 1, 2],
    ] as const) {
      hashes.add(pixelHash({ data, width, height, channels }));
    }
    assert.equal(hashes.size, 4);
    const view = Uint8Array.from([9, ...data, 9]).subarray(1, 25);
    const [a, b] = [data, view].map((pixels) => pixelHash({ data: pixels, width: 4, height: 2, channels: 3 }));
    assert.equal(a, b);
  });

  it("refuses samples that do not fit the size", () => {
    const picture = { data, width: 4, height: 3, channels: 3 } as const;
    assert.throws(() => pixelHash(picture), /pixelHash: .*"samples": expected 36/);
    assert.throws(() => native.pixelHash(data, 4, 2, 5), /"channels"/);
    assert.throws(() => native.pixelHash(data, 2 ** 32, 2, 3), /"width"/);
  });
});
