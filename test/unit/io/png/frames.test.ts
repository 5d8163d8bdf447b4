import assert from "node:assert/strict";
import { deflateSync } from "node:zlib";
import {
  type DecodedFrames,
  decodePng,
  decodePngFramesHere,
  decodePngFrames as decodePngFramesLater,
} from "#src/io/png/png.js";
import { loadNative } from "#src/native/load.js";
import { refuses } from "../../../helpers/errors.js";
import { type ApngPlan, apngChunks, exifChunk, makeApng, words } from "../../../helpers/png/apng-file.js";
import { assemble } from "../../../helpers/png/png-file.js";
import { seededInts } from "../../../helpers/seeded.js";

type Chunk = readonly [string, Uint8Array];
type Pixel = readonly number[];

const CONTROLS = [0, 1, 2].flatMap((disposal) => [0, 1].map((blend) => ({ disposal, blend })));

/** Samples of one frame as Pillow's reader has them, pixel by pixel: alpha is blended as any other sample. */
function model(plan: ApngPlan, most: number, expand: (bytes: readonly number[]) => Pixel, blends: boolean): Pixel[][] {
  const { width, frames } = plan;
  const bytes = ({ 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 }[plan.colour]! * (plan.depth ?? 8)) / 8;
  const zero = expand(Array.from({ length: bytes }, () => 0));
  const shown: Pixel[][] = [];
  let base: Pixel[] = Array.from({ length: width * plan.height }, () => zero);
  frames.forEach(({ control, bytes: samples }, number) => {
    const box = { width, height: plan.height, x: 0, y: 0, disposal: 0, blend: 0, ...control };
    const canvas = [...base];
    for (let y = 0; y < box.height; y++)
      for (let x = 0; x < box.width; x++) {
        const at = (box.y + y) * width + box.x + x;
        const from = (y * box.width + x) * bytes;
        const pixel = expand(samples.slice(from, from + bytes));
        const alpha = number === 0 || box.blend === 0 || !blends ? most : pixel.at(-1)!;
        canvas[at] = pixel.map((sample, k) => Math.round((base[at]![k]! * (most - alpha) + sample * alpha) / most));
      }
    shown.push(canvas);
    const isBackground = box.disposal === 1 || (box.disposal === 2 && number === 0);
    if (isBackground) base = canvas.map((pixel, at) => (inside(box, width, at) ? zero : pixel));
    else if (box.disposal === 0) base = canvas;
  });
  return shown;
}

const inside = (box: { x: number; y: number; width: number; height: number }, width: number, at: number): boolean => {
  const [x, y] = [at % width, Math.floor(at / width)];
  return x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height;
};

/** Frames as both functions read them, which agree in samples and errors. */
async function decodePngFrames(bytes: Uint8Array, limit?: number): Promise<DecodedFrames> {
  const [later, here] = await Promise.allSettled([
    decodePngFramesLater(bytes, limit),
    (async () => decodePngFramesHere(bytes, limit))(),
  ]);
  if (later.status === "rejected") {
    const { code, message } = (here as PromiseRejectedResult).reason;
    assert.deepEqual([code, message], [later.reason.code, later.reason.message]);
    throw later.reason;
  }
  assert.deepEqual(here, later);
  return later.value;
}

const samplesOf = ({ data }: DecodedFrames): number[] => [...data];

describe("decodePngFrames", () => {
  const palette = [10, 20, 30, 200, 100, 50, 0, 255, 0, 9, 9, 9];
  const kinds: {
    name: string;
    plan: Pick<ApngPlan, "colour" | "depth" | "palette" | "transparency">;
    expand: (bytes: readonly number[]) => Pixel;
    /** Pillow passes over the transparency of grey if it blends. */
    blends?: false;
    values?: number;
  }[] = [
    { name: "RGBA", plan: { colour: 6 }, expand: (b) => b },
    { name: "grey and alpha", plan: { colour: 4 }, expand: (b) => b },
    { name: "RGB", plan: { colour: 2 }, expand: (b) => b, blends: false },
    {
      name: "RGB with one transparent colour",
      plan: { colour: 2, transparency: [0, 1, 0, 1, 0, 1] },
      expand: (b) => [...b, b.every((v) => v === 1) ? 0 : 255],
      values: 2,
    },
    {
      name: "grey with one transparent value",
      plan: { colour: 0, transparency: [0, 1] },
      expand: (b) => [...b, b[0] === 1 ? 0 : 255],
      blends: false,
      values: 3,
    },
    {
      name: "palette",
      plan: { colour: 3, palette },
      expand: ([i]) => palette.slice(3 * i!, 3 * i! + 3),
      blends: false,
      values: 4,
    },
    {
      name: "palette with transparency",
      plan: { colour: 3, palette, transparency: [255, 0, 255] },
      expand: ([i]) => [...palette.slice(3 * i!, 3 * i! + 3), [255, 0, 255, 255][i!]!],
      values: 4,
    },
    {
      name: "RGBA of 16 bits",
      plan: { colour: 6, depth: 16 },
      expand: (b) => [0, 2, 4, 6].map((k) => b[k]! * 256 + b[k + 1]!),
    },
  ];

  for (const { name, plan, expand, blends = true, values = 256 } of kinds) {
    it(`composites ${name}: every disposal after every blend`, async () => {
      const random = seededInts(name.length);
      const bytesOf = (count: number) => Array.from({ length: count }, () => random(values));
      const pixel = ({ 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 }[plan.colour]! * (plan.depth ?? 8)) / 8;
      for (const isInFront of [false, true])
        for (const first of CONTROLS)
          for (const second of CONTROLS) {
            const boxes = [
              { width: 4, height: 3, ...first },
              { width: 2, height: 2, x: 1, y: 1, ...second },
              { width: 3, height: 1, x: 0, y: 1, ...first },
              { width: 4, height: 3, ...second },
              { width: 1, height: 2, x: 3, y: 1, blend: 1 },
            ];
            const frames = boxes.map((control) => ({
              control,
              bytes: bytesOf(control.width * control.height * pixel),
            }));
            const full = {
              ...plan,
              width: 4,
              height: 3,
              frames: isInFront ? [{ bytes: bytesOf(12 * pixel) }, ...frames] : frames,
            };
            const decoded = await decodePngFrames(makeApng(full));
            const expected = model(full, plan.depth === 16 ? 65535 : 255, expand, blends);
            assert.equal(decoded.frames, expected.length);
            assert.deepEqual(samplesOf(decoded), expected.flat(2), JSON.stringify({ isInFront, first, second }));
          }
    });
  }

  const rgb: ApngPlan = {
    width: 2,
    height: 1,
    colour: 2,
    frames: [1, 2, 3].map((n) => ({ control: {}, bytes: [n, n, n, 0, 0, n] })),
  };

  it("reads the first frames up to a limit, and decodePng the first", async () => {
    const file = makeApng(rgb);
    assert.deepEqual(samplesOf(await decodePngFrames(file, 2)), [1, 1, 1, 0, 0, 1, 2, 2, 2, 0, 0, 2]);
    assert.deepEqual([...(await decodePng(file)).data], [1, 1, 1, 0, 0, 1]);
    const chunks = apngChunks(rgb);
    const broken = assemble(chunks.filter(([type]) => type !== "fdAT"));
    assert.deepEqual([...(await decodePng(broken)).data], [1, 1, 1, 0, 0, 1]);
    assert.deepEqual(samplesOf(await decodePngFrames(broken, 1)), [1, 1, 1, 0, 0, 1]);
  });

  it("hands samples out once, into an array of their length", async () => {
    const native = loadNative();
    const { samples, byteLength } = await native.decodePngFrames(makeApng(rgb), 100, 2);
    assert.throws(() => native.takeSamples(samples, new Uint8Array(byteLength + 1)), /out/);
    const out = new Uint8Array(byteLength);
    native.takeSamples(samples, out);
    assert.deepEqual([...out], [1, 1, 1, 0, 0, 1, 2, 2, 2, 0, 0, 2]);
    assert.throws(() => native.takeSamples(samples, out), /out/);
    native.takeSamples(samples, new Uint8Array(0));
    assert.throws(() => native.takeSamples({}, out), /samples must be those of decodePngFrames/);
  });

  it("writes into memory that has room for the samples, apart from the file", () => {
    const native = loadNative();
    const file = makeApng(rgb);
    const { byteLength, frames, width } = native.inspectPngFrames(file, 100, 2);
    assert.deepEqual([byteLength, frames, width], [12, 2, 2]);
    const short = new Uint8Array(byteLength - 1);
    assert.throws(() => native.decodePngFramesHere(short, file, 100, 2), /^RangeError: decodePngFramesHere: /);
    assert.throws(() => native.decodePngFramesHere(file.subarray(0, 12), file, 100, 2), /bytes/);
    assert.throws(() => native.inspectPngFrames(new Uint8Array(new SharedArrayBuffer(9)), 100, 2), /SharedArrayBuffer/);
  });

  it("reads a late, repeated or empty animation chunk as a still picture", async () => {
    const chunks = apngChunks(rgb);
    const without = chunks.filter(([type]) => type !== "acTL");
    const control: Chunk = ["acTL", words(3, 0)];
    for (const file of [
      assemble(without),
      assemble([...without.slice(0, -1), control, without.at(-1)!]),
      assemble([without[0]!, control, control, ...without.slice(1)]),
      assemble([without[0]!, ["acTL", words(0, 0)], ...without.slice(1)]),
      assemble([without[0]!, ["acTL", words(3)], ...without.slice(1)]),
      assemble([without[0]!, ["acTL", words(0xffffffff, 0)], ...without.slice(1)]),
    ]) {
      assert.equal((await decodePngFrames(file)).frames, 1);
    }
  });

  it("refuses damaged animations with a reason", async () => {
    const chunks = apngChunks(rgb);
    const change = (type: string, number: number, edit: (data: Buffer) => Uint8Array): Buffer => {
      let seen = 0;
      return assemble(
        chunks.map(([name, data]): Chunk => {
          const isIt = name === type && seen++ === number;
          return [name, isIt ? edit(Buffer.from(data)) : data];
        }),
      );
    };
    const set =
      (at: number, ...values: number[]) =>
      (data: Buffer) => {
        words(...values).copy(data, at);
        return data;
      };
    const byte = (at: number, value: number) => (data: Buffer) => {
      data[at] = value;
      return data;
    };
    const drop = (...numbers: number[]) => assemble(chunks.filter((_, number) => !numbers.includes(number)));
    const at = (type: string, number: number) =>
      chunks.map(([name], i) => (name === type ? i : -1)).filter((i) => i >= 0)[number]!;
    const cases: [Buffer, RegExp][] = [
      [change("acTL", 0, set(0, 4, 0)), /fewer frames than it declares/],
      [change("acTL", 0, set(0, 0x7fffffff, 0)), /fewer frames/],
      [change("fcTL", 1, set(0, 7)), /out of order/],
      [change("fdAT", 1, set(0, 2)), /out of order/],
      [change("fdAT", 1, (data) => data.subarray(0, 3)), /out of order/],
      [change("fcTL", 1, (data) => data.subarray(0, 25)), /wrong length/],
      [change("fcTL", 1, set(4, 3)), /extends beyond/],
      [change("fcTL", 1, set(4, 0)), /empty/],
      [change("fcTL", 1, set(12, 0xffffffff)), /extends beyond/],
      [change("fcTL", 1, set(16, 1)), /extends beyond/],
      [change("fcTL", 1, byte(24, 3)), /unknown operation/],
      [change("fcTL", 1, byte(25, 2)), /unknown operation/],
      [change("fcTL", 0, set(4, 1)), /smaller than the picture/],
      [change("fcTL", 1, set(4, 1)), /more data than the picture/],
      [change("fdAT", 2, byte(6, 0xff)), /damaged|ends early/],
      [drop(at("fcTL", 1)), /out of order/],
      [drop(at("fdAT", 0), at("fdAT", 1)), /out of order/],
    ];
    const head = chunks.slice(0, 2);
    const [, , control, first, second] = chunks;
    const next = (number: number): Chunk => ["fcTL", Buffer.concat([words(number), control![1].subarray(4)])];
    const data = (number: number): Chunk => ["fdAT", Buffer.concat([words(number), first![1], second![1]])];
    const end: Chunk = ["IEND", Buffer.alloc(0)];
    const bomb = Buffer.concat([words(2), deflateSync(Buffer.alloc(1 << 22))]);
    cases.push(
      [assemble([...head, first!, second!, data(0), end]), /data outside any frame/],
      [assemble([...head, control!, first!, second!, data(1), end]), /data outside any frame/],
      [assemble([...head, control!, data(1), first!, second!, end]), /data outside any frame/],
      [assemble([...head, control!, next(1), first!, second!, end]), /has no data/],
      [assemble([...head, control!, first!, second!, next(1), next(2), end]), /has no data/],
      [assemble([...head, control!, first!, second!, next(1), end]), /fewer frames/],
      [
        assemble([head[0]!, ["acTL", words(2, 0)], control!, first!, second!, next(1), ["fdAT", bomb], end]),
        /more data than the picture/,
      ],
    );
    for (const [file, reason] of cases) await refuses(decodePngFrames(file), "png.invalid", reason, /^PNG: [^:]+\.$/);
  });

  it("counts the pixels of all frames before it allocates", async () => {
    const [width, height] = [1 << 14, 1 << 12];
    const still = deflateSync(Buffer.alloc((width / 8 + 1) * height));
    const dot = Buffer.concat([words(2), deflateSync(Buffer.from([0, 0]))]);
    const control = (number: number, ...box: number[]): Chunk => [
      "fcTL",
      Buffer.concat([words(number, ...box, 0, 0), Buffer.alloc(6)]),
    ];
    const file = assemble([
      ["IHDR", Buffer.concat([words(width, height), Buffer.from([1, 0, 0, 0, 0])])],
      ["acTL", words(3, 0)],
      control(0, width, height),
      ["IDAT", still],
      control(1, 1, 1),
      ["fdAT", dot],
      control(3, 1, 1),
      ["fdAT", Buffer.concat([words(4), dot.subarray(4)])],
      ["IEND", Buffer.alloc(0)],
    ]);
    const before = process.memoryUsage().rss;
    await refuses(decodePngFrames(file), "png.too-large", /134217728 pixels in all frames/);
    assert.ok(process.memoryUsage().rss - before < 32 << 20);
  });

  it("turns every frame as EXIF says, wherever the chunk lies and in both byte orders", async () => {
    const plan = { width: 2, height: 1, colour: 0, frames: [1, 5].map((n) => ({ control: {}, bytes: [n, n + 1] })) };
    const short = (value: number) => exifChunk([[0x0112, 3, 1, [0, value, 0, 0]]]);
    const little = exifChunk([[0x0112, 3, 1, [6, 0, 0, 0]]], { big: false });
    const later = exifChunk([
      [0x010f, 2, 4, [65, 66, 67, 0]],
      [0x0112, 4, 1, [0, 0, 0, 6]],
    ]);
    const named = exifChunk([[0x0112, 3, 1, [0, 6, 0, 0]]], { prefix: "Exif\0\0" });
    for (const chunk of [short(6), little, later, named]) {
      const { width, height, data } = await decodePngFrames(makeApng({ ...plan, extra: [chunk] }));
      assert.deepEqual([width, height, ...data], [1, 2, 1, 2, 5, 6]);
    }
    const atEnd = apngChunks(plan);
    atEnd.splice(-1, 0, short(3));
    assert.deepEqual(samplesOf(await decodePngFrames(assemble(atEnd))), [2, 1, 6, 5]);
  });

  it("turns tall and wide pictures of every pixel size", async () => {
    const random = seededInts(3);
    const sources: Record<number, (x: number, y: number, w: number, h: number) => [number, number]> = {
      1: (x, y) => [x, y],
      2: (x, y, w) => [w - 1 - x, y],
      3: (x, y, w, h) => [w - 1 - x, h - 1 - y],
      4: (x, y, _w, h) => [x, h - 1 - y],
      5: (x, y) => [y, x],
      6: (x, y, _w, h) => [y, h - 1 - x],
      7: (x, y, w, h) => [w - 1 - y, h - 1 - x],
      8: (x, y, w) => [w - 1 - y, x],
    };
    for (const [colour, depth] of [
      [0, 8],
      [4, 8],
      [2, 8],
      [6, 8],
      [2, 16],
      [6, 16],
    ] as const)
      for (const [width, height] of [
        [70, 3],
        [5, 41],
      ] as const)
        for (const [way, source] of Object.entries(sources)) {
          const channels = { 0: 1, 2: 3, 4: 2, 6: 4 }[colour];
          const bytes = Array.from({ length: (width * height * channels * depth) / 8 }, () => random(256));
          const plan = { width, height, colour, depth, frames: [{ bytes }] };
          const plain = await decodePngFrames(makeApng(plan));
          const turned = await decodePngFrames(
            makeApng({ ...plan, extra: [exifChunk([[0x0112, 3, 1, [0, Number(way), 0, 0]]])] }),
          );
          const expected: number[] = [];
          for (let y = 0; y < turned.height; y++)
            for (let x = 0; x < turned.width; x++) {
              const [u, v] = source(x, y, width, height);
              for (let k = 0; k < channels; k++) expected.push(plain.data[(v * width + u) * channels + k]!);
            }
          assert.deepEqual([turned.width, turned.height], Number(way) > 4 ? [height, width] : [width, height]);
          assert.deepEqual(samplesOf(turned), expected, `${colour} ${depth} ${width} ${way}`);
        }
  });

  it("leaves a picture as it is if EXIF is damaged", async () => {
    const plan = { width: 2, height: 1, colour: 0, frames: [{ bytes: [1, 2] }] };
    const value = [0, 3, 0, 0];
    const good = exifChunk([[0x0112, 3, 1, value]]);
    const bad: Chunk[] = [
      exifChunk([[0x0112, 3, 1, [0, 9, 0, 0]]]),
      exifChunk([[0x0112, 3, 1, [0, 0, 0, 0]]]),
      exifChunk([[0x0112, 3, 2, value]]),
      exifChunk([[0x0112, 2, 1, value]]),
      exifChunk([[0x0112, 4, 1, [0xff, 0xff, 0xff, 0xff]]]),
      exifChunk([[0x0112, 3, 1, value]], { offset: 0xffffffff }),
      exifChunk([[0x0112, 3, 1, value]], { offset: 23 }),
      exifChunk([[0x0112, 3, 1, value]], { offset: 0 }),
      exifChunk([]),
      ...Array.from({ length: 18 }, (_, length): Chunk => ["eXIf", good[1].subarray(0, length)]),
    ];
    for (const chunk of bad)
      assert.deepEqual(samplesOf(await decodePngFrames(makeApng({ ...plan, extra: [chunk] }))), [1, 2]);
    assert.deepEqual(samplesOf(await decodePngFrames(makeApng({ ...plan, extra: [good] }))), [2, 1]);
  });
});
