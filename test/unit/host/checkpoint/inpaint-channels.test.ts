import assert from "node:assert/strict";
import { modelSampling, randn, Tensor } from "latentkit";
import { inpaintChannels } from "#src/host/checkpoint/inpaint-channels.js";
import { refuses } from "../../../helpers/errors.js";

const latent = randn([2, 4, 4, 4], { seed: 1 });
const run = { sampling: modelSampling("sd15"), latent, negative: [], steps: 1 };
const entry = (options: object) => [Tensor.zeros([1, 77, 8]), options] as never;
const channel = ({ data }: Tensor, index: number) => [...data.slice(index * 16, (index + 1) * 16)];

describe("inpaintChannels", () => {
  it("repaint everything, over grey, without a mask", () => {
    const channels = inpaintChannels(entry({}), run);
    assert.deepEqual([...channels.shape], [2, 5, 4, 4]);
    const grey = [0.8223, -0.6876, 0.6364, 0.138].map(Math.fround);
    assert.deepEqual(channel(channels, 0), new Array(16).fill(1));
    for (const [i, value] of grey.entries()) assert.deepEqual(channel(channels, i + 1), new Array(16).fill(value));
  });

  it("are mask and latent of the run, the mask rounded", () => {
    const mask = Tensor.from(
      Array.from({ length: 16 }, (_, i) => i / 16),
      [1, 4, 4],
    );
    const channels = inpaintChannels(entry({}), { ...run, mask });
    // half rounds to even
    assert.deepEqual(
      channel(channels, 0),
      Array.from({ length: 16 }, (_, i) => (i > 8 ? 1 : 0)),
    );
    assert.deepEqual(channel(channels, 1), [...latent.data.slice(0, 16)]);
    assert.deepEqual(channel(channels, 6), [...latent.data.slice(64, 80)]);
  });

  it("are an entry's own, in the model's units and at the latent's size", () => {
    const own = { concat_mask: Tensor.full([1, 1, 32, 32], 1), concat_latent_image: Tensor.full([1, 4, 8, 8], 2) };
    const channels = inpaintChannels(entry(own), run);
    assert.deepEqual(channel(channels, 0), new Array(16).fill(1));
    const { scaleFactor } = run.sampling.latentFormat;
    for (const value of channel(channels, 3)) assert.ok(Math.abs(value - 2 * scaleFactor) < 1e-6);
  });

  it("refuse what is no tensor of their shapes", async () => {
    const mask = Tensor.full([1, 4, 4], 1);
    await refuses(() => inpaintChannels(entry({ concat_mask: 1 }), run), "tensor.bad-shape", /concat_mask/);
    const wide = { concat_mask: mask, concat_latent_image: Tensor.zeros([1, 16, 4, 4]) };
    await refuses(() => inpaintChannels(entry(wide), run), "tensor.bad-shape", /with 4 channels/);
  });
});
