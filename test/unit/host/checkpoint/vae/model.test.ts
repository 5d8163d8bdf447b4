import assert from "node:assert/strict";
import { randn, Tensor, type Vae } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { tinyHost } from "../../../../helpers/models/tiny-host.js";
import { assertSameBits } from "../../../../helpers/tensor/bits.js";

const picture = (height: number, width: number): Tensor =>
  Tensor.from(
    randn([1, height, width, 3], { seed: 3 }).data.map((value) => Math.min(1, Math.abs(value) / 3)),
    [1, height, width, 3],
  );

describe("CheckpointVae", () => {
  const host = tinyHost();
  const load = (name: string): Promise<Vae> => host().loadFile!("vae", `${name}.safetensors`);

  for (const name of ["tiny-vae", "tiny-taesd"])
    it(`encodes and decodes pictures as nodes pass them, ${name}`, async () => {
      const vae = await load(name);
      const latent = await vae.encode!(picture(40, 24));
      assert.deepEqual([...latent.shape], [1, 4, 5, 3]);
      const image = await vae.decode!(latent);
      assert.deepEqual([...image.shape], [1, 40, 24, 3]);
      assert.ok(image.data.every((value) => value >= 0 && value <= 1));
      assert.ok(new Set(image.data).size > 100);
    });

  it("cuts sides to multiples of 8, from the middle", async () => {
    const vae = await load("tiny-vae");
    const whole = picture(45, 26);
    const [height, width, top, left] = [40, 24, 2, 1];
    const middle = Tensor.from(
      Array.from({ length: height * width * 3 }, (_, i) => {
        const [row, column, channel] = [Math.floor(i / (3 * width)), Math.floor(i / 3) % width, i % 3];
        return whole.data[((row + top) * 26 + column + left) * 3 + channel]!;
      }),
      [1, height, width, 3],
    );
    assert.deepEqual((await vae.encode!(whole)).data, (await vae.encode!(middle)).data);
  });

  it("decodes each item of a batch as alone", async () => {
    const vae = await load("tiny-vae");
    const latents = randn([2, 4, 6, 6], { seed: 5 });
    const images = await vae.decode!(latents);
    const second = await vae.decode!(Tensor.from(latents.data.slice(4 * 36), [1, 4, 6, 6]));
    assertSameBits(Tensor.from(images.data.slice(second.size), second.shape), second, "second");
  });

  it("refuses anything but a picture or a latent of its kind", async () => {
    const vae = await load("tiny-vae");
    const bad = "tensor.bad-shape";
    await refuses(vae.decode!(Tensor.zeros([1, 16, 4, 4])), bad, /VAE of tiny-vae\.safetensors: .*\[B, 4, h, w\]/);
    await refuses(vae.encode!(Tensor.zeros([1, 7, 64, 3])), bad, /at least 8 x 8 pixels/);
    await refuses(vae.encode!(Tensor.zeros([1, 16, 16, 4])), bad, /an image \[B, H, W, 3\]/);
  });
});
