import assert from "node:assert/strict";
import { type Conditioning, createPreviewHost, invokeNode, type Latent, randn, Tensor, type Vae } from "latentkit";
import { refuses, rejectsAs } from "../../../helpers/errors.js";
import { assertClose, assertSameBits } from "../../../helpers/tensor/bits.js";

const host = createPreviewHost();

describe("InstructPixToPixConditioning", () => {
  it("encodes whole cells of the image for both sides, and begins with an empty latent of their size", async () => {
    const vae = {
      encode: async (image: Tensor) => Tensor.full([1, 4, image.shape[1]! / 8, image.shape[2]! / 8], image.data[0]!),
      decode: async (latent: Tensor) => latent,
    };
    const prompt = (value: number): Conditioning => [[Tensor.full([1, 77, 4], value), { a: value }]];
    const inputs = { positive: prompt(1), negative: prompt(2), vae, pixels: Tensor.full([1, 19, 24, 4], 0.25) };
    const { result } = await invokeNode("InstructPixToPixConditioning", inputs);
    const [positive, negative, latent] = result as [Conditioning, Conditioning, Latent];
    for (const [value, [[tokens, options]]] of [
      [1, positive],
      [2, negative],
    ] as [number, [Conditioning[number]]][]) {
      assert.equal(tokens.data[0], value);
      assert.equal(options.a, value);
      assertSameBits(options.concat_latent_image, Tensor.full([1, 4, 2, 3], 0.25));
    }
    assertSameBits(latent.samples, Tensor.zeros([1, 4, 2, 3]));
  });
});

describe("VAEDecode", () => {
  const decode = async (inputs: object): Promise<unknown[]> => (await invokeNode("VAEDecode", { ...inputs })).result;

  it("decodes what the vae has encoded", async () => {
    const { vae } = await host.loadCheckpoint("preview-sd15.safetensors");
    const samples = { samples: await vae.encode(Tensor.full([1, 16, 24, 3], 0.25)) };
    const [image] = (await decode({ samples, vae })) as [Tensor];
    assert.deepEqual(image.shape, [1, 16, 24, 3]);
    for (const value of image.data) assert.ok(Math.abs(value - 0.25) < 1e-5);
  });

  it("refuses bad inputs", async () => {
    const { vae } = await host.loadCheckpoint("preview-sd15.safetensors");
    await refuses(decode({ samples: Tensor.zeros([1, 16, 16, 3]), vae }), "input.wrong-type", /samples/);
    await refuses(decode({ samples: { samples: Tensor.zeros([1, 16, 2, 2]) }, vae }), "tensor.bad-shape");
  });
});

describe("VAEDecodeTiled", () => {
  /** A vae that repeats the first three channels of a cell over its pixels, and notes the sizes it gets. */
  function nearestVae(sizes: string[] = [], side = 8): Vae {
    const decode = async (latent: Tensor) => {
      const [batch, channels, rows, columns] = latent.shape as [number, number, number, number];
      sizes.push(`${rows} x ${columns}`);
      const image = Tensor.zeros([batch, rows * side, columns * side, 3]);
      for (let at = 0; at < image.size; at++) {
        const [colour, pixel] = [at % 3, Math.floor(at / 3)];
        const [x, y] = [pixel % (columns * side), Math.floor(pixel / (columns * side)) % (rows * side)];
        const item = Math.floor(pixel / (rows * columns * side * side));
        const cell = ((item * channels + colour) * rows + Math.floor(y / side)) * columns + Math.floor(x / side);
        image.data[at] = latent.data[cell]!;
      }
      return image;
    };
    return { cell: side, decode, encode: () => assert.fail("nothing to encode") };
  }

  const run = async (vae: unknown, samples: Tensor, tile_size = 64, overlap = 16) => {
    const inputs = { samples: { samples }, vae, tile_size, overlap, temporal_size: 64, temporal_overlap: 8 };
    return (await invokeNode("VAEDecodeTiled", inputs)).result[0] as Tensor;
  };

  it("gives the picture of a whole decode if a vae sees no further than a cell", async () => {
    for (const [rows, columns, overlap] of [
      [8, 9, 16],
      [20, 13, 16],
      [17, 8, 0],
      [23, 23, 4096],
    ] as const) {
      const samples = randn([2, 4, rows, columns], { seed: rows });
      assertClose(await run(nearestVae(), samples, 64, overlap), await nearestVae().decode(samples), () => 1e-6);
    }
  });

  it("takes tiles of fewer cells of a vae whose cells are larger", async () => {
    const sizes: string[] = [];
    const samples = randn([1, 4, 9, 5], { seed: 3 });
    const whole = await nearestVae([], 16).decode(samples);
    assertClose(await run(nearestVae(sizes, 16), samples, 64, 16), whole, () => 1e-6);
    assert.deepEqual(sizes, new Array(3 * 2).fill("4 x 4"));
  });

  it("decodes tiles of one size, the last ones at the end", async () => {
    const sizes: string[] = [];
    await run(nearestVae(sizes), Tensor.zeros([1, 4, 9, 20]));
    assert.deepEqual(sizes, new Array(2 * 3).fill("8 x 8"));
  });

  it("rises linearly from one tile to the next where they overlap", async () => {
    let calls = 0;
    const vae = { decode: async () => Tensor.full([1, 64, 64, 3], calls++) };
    const image = await run(vae, Tensor.zeros([1, 4, 8, 14]));
    const line = [...image.data.slice(0, 112 * 3)].filter((_, at) => at % 3 === 0);
    // tiles at pixels 0 to 63 and 48 to 111
    assert.ok(line.slice(0, 48).every((value) => value === 0) && line.slice(64).every((value) => value === 1));
    for (let step = 0; step < 16; step++) assert.ok(Math.abs(line[48 + step]! - (step + 1) / 17) < 1e-6);
  });

  it("leaves a latent of one tile to the vae, and refuses tiles of a wrong size", async () => {
    const samples = randn([1, 4, 8, 8], { seed: 1 });
    assertSameBits(await run(nearestVae(), samples), await nearestVae().decode(samples));
    const vae = { decode: async () => Tensor.zeros([1, 8, 8, 3]) };
    await refuses(run(vae, Tensor.zeros([1, 4, 9, 9])), "value.invalid", /a vae that returns \[1, 64, 64, 3\]/);
  });

  it("stops between tiles when it is aborted", async () => {
    const controller = new AbortController();
    const sizes: string[] = [];
    const { decode } = nearestVae(sizes);
    const vae = {
      decode: (latent: Tensor) => {
        controller.abort();
        return decode(latent);
      },
    };
    const samples = { samples: Tensor.zeros([1, 4, 64, 64]) };
    const inputs = { samples, vae, tile_size: 64, overlap: 0, temporal_size: 64, temporal_overlap: 8 };
    await rejectsAs(controller.signal, invokeNode("VAEDecodeTiled", inputs, { signal: controller.signal }));
    assert.equal(sizes.length, 1);
  });
});

describe("VAEEncode", () => {
  const encode = async (inputs: object): Promise<unknown[]> => (await invokeNode("VAEEncode", { ...inputs })).result;

  it("encodes colours without alpha", async () => {
    const { vae } = await host.loadCheckpoint("preview-sd15.safetensors");
    const pixels = Tensor.full([1, 16, 24, 4], 0.25);
    const [{ samples }] = (await encode({ pixels: Tensor.full([1, 16, 24, 3], 0.25), vae })) as [Latent];
    for (let i = 3; i < pixels.size; i += 4) pixels.data[i] = 0;
    const [latent] = (await encode({ pixels, vae })) as [Latent];
    assert.deepEqual(latent.samples.shape, [1, 4, 2, 3]);
    assert.deepEqual(latent.samples.data, samples.data);
  });

  it("refuses bad inputs", async () => {
    const { vae } = await host.loadCheckpoint("preview-sd15.safetensors");
    const pixels = Tensor.zeros([1, 16, 16, 3]);
    await refuses(encode({ pixels }), "input.missing", /vae/);
    await refuses(encode({ pixels, vae: {} }), "input.wrong-type", /vae/);
    await refuses(encode({ pixels: Tensor.zeros([1, 16, 16, 1]), vae }), "tensor.bad-shape", /VAEEncode/);
  });
});

describe("VAEEncodeTiled", () => {
  const run = async (vae: unknown, pixels: Tensor, overlap = 32) => {
    const inputs = { pixels, vae, tile_size: 64, overlap, temporal_size: 64, temporal_overlap: 8 };
    return ((await invokeNode("VAEEncodeTiled", inputs)).result[0] as Latent).samples;
  };

  it("gives the latent of a whole encode if a cell follows from its own pixels", async () => {
    const { vae } = await host.loadCheckpoint("preview-sdxl.safetensors");
    for (const [height, width, overlap] of [
      [64, 72, 32],
      [161, 107, 16],
      [200, 64, 0],
    ] as const) {
      const pixels = randn([2, height, width, 3], { seed: height });
      assertClose(await run(vae, pixels, overlap), await vae.encode(pixels), (x) => 1e-6 * Math.max(1, Math.abs(x)));
    }
  });

  it("leaves out alpha, and refuses an image without a whole cell", async () => {
    const shapes: (readonly number[])[] = [];
    const vae = { encode: async (image: Tensor) => shapes.push(image.shape) && Tensor.zeros([1, 4, 8, 8]) };
    assert.deepEqual((await run(vae, Tensor.zeros([1, 64, 96, 4]))).shape, [1, 4, 8, 12]);
    assert.deepEqual(shapes, new Array(2).fill([1, 64, 64, 3]));
    await refuses(
      run(vae, Tensor.zeros([1, 64, 7, 3])),
      "input.invalid",
      /input "pixels": expected an image of 3 or 4/,
    );
    await refuses(run(vae, Tensor.zeros([1, 64, 64, 1])), "input.invalid", /pixels/);
  });

  it("cuts a picture to whole cells of a vae whose cells are larger", async () => {
    const shapes: (readonly number[])[] = [];
    const encode = async (image: Tensor) => {
      shapes.push(image.shape);
      return Tensor.zeros([1, 4, image.shape[1]! / 16, image.shape[2]! / 16]);
    };
    assert.deepEqual((await run({ cell: 16, encode }, Tensor.zeros([1, 72, 90, 3]))).shape, [1, 4, 4, 5]);
    assert.deepEqual(shapes, new Array(2).fill([1, 64, 64, 3]));
    const small = run({ cell: 16, encode }, Tensor.zeros([1, 64, 15, 3]));
    await refuses(small, "input.invalid", /at least 16 x 16 pixels/);
  });

  it("refuses latents that do not fit their tiles", async () => {
    let channels = 3;
    const vae = { encode: async () => Tensor.zeros([1, channels++, 8, 8]) };
    await refuses(run(vae, Tensor.zeros([1, 64, 96, 3])), "value.invalid", /a vae that returns \[1, 3, 8, 8\]/);
  });
});
