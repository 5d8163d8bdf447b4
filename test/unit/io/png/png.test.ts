import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import { PNG } from "pngjs";
import { decodePng, encodeHere, encodePng, imageTensor } from "#src/io/png/png.js";
import { clearPool, pooledBytes, returnMemory } from "#src/tensor/memory.js";
import { refuses } from "../../../helpers/errors.js";
import { pngChunks, pngText } from "../../../helpers/png/png-chunks.js";

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
    assert.throws(() => encodeHere({ ...wrong, data: new Uint8Array(12) }, { text: { key: "猫" } }), /Latin-1/);
  });

  it("refuses text that tEXt cannot hold", async () => {
    const image = Tensor.zeros([1, 1, 3]);
    for (const key of ["", "a".repeat(80), "工", "a\0", "a\n", "\u0085"]) {
      await refuses(encodePng(image, { text: { [key]: "x" } }), "value.invalid", /1 to 79/);
    }
    for (const value of ["a\0", "猫", 5 as unknown as string]) {
      await refuses(encodePng(image, { text: { key: value } }), "value.invalid", /Latin-1/);
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
