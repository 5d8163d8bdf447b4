import assert from "node:assert/strict";
import { invokeNode, randn, Tensor, type Vae } from "latentkit";
import { refuses, rejectsAs } from "../../../../helpers/errors.js";
import { assertClose, assertSameBits } from "../../../../helpers/tensor/bits.js";

/** A vae that repeats the first three channels of a cell over its 8 x 8 pixels, and notes the sizes it gets. */
function nearestVae(sizes: string[] = []): Vae {
  const decode = async (latent: Tensor) => {
    const [batch, channels, rows, columns] = latent.shape as [number, number, number, number];
    sizes.push(`${rows} x ${columns}`);
    const image = Tensor.zeros([batch, rows * 8, columns * 8, 3]);
    for (let at = 0; at < image.size; at++) {
      const [colour, pixel] = [at % 3, Math.floor(at / 3)];
      const [x, y] = [pixel % (columns * 8), Math.floor(pixel / (columns * 8)) % (rows * 8)];
      const item = Math.floor(pixel / (rows * columns * 64));
      const cell = ((item * channels + colour) * rows + Math.floor(y / 8)) * columns + Math.floor(x / 8);
      image.data[at] = latent.data[cell]!;
    }
    return image;
  };
  return { decode, encode: () => assert.fail("nothing to encode") };
}

const run = async (vae: unknown, samples: Tensor, tile_size = 64, overlap = 16) => {
  const inputs = { samples: { samples }, vae, tile_size, overlap, temporal_size: 64, temporal_overlap: 8 };
  return (await invokeNode("VAEDecodeTiled", inputs)).result[0] as Tensor;
};

describe("VAEDecodeTiled", () => {
  it("gives the picture of a whole decode where a vae sees no further than a cell", async () => {
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
