import assert from "node:assert/strict";
import { type Conditioning, type Model, randn, Tensor } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { layerError } from "../../../../helpers/models/layers.js";
import { someContext, tinyHost } from "../../../../helpers/models/tiny-host.js";

const cond = (seed: number, options: Record<string, unknown> = {}): Conditioning =>
  [[someContext(seed), options]] as unknown as Conditioning;
const x = randn([1, 4, 8, 8], { seed: 1 });
const SIGMA = 2;

describe("CheckpointModel", () => {
  const host = tinyHost();
  let model: Model;
  before(async () => {
    ({ model } = await host().loadCheckpoint("tiny-sd1.safetensors"));
  });
  const predicted = (of: Model, sigma = SIGMA) => of.predict!(x, sigma, cond(1));
  const read = (sampling: string, of = model) => of.patch!({ node: "ModelSamplingDiscrete", inputs: { sampling } });

  it("reads its network as a node asks", async () => {
    const eps = await predicted(model);
    const out = await predicted(read("x0"));
    const timestep = model.sampling.timestep(SIGMA);
    const scaled = 10 * timestep;
    const skip = 0.25 / (scaled ** 2 + 0.25);
    const toClean = scaled / Math.hypot(scaled, 0.5);
    const expected: Readonly<Record<string, (x: number, out: number) => number>> = {
      eps: (x, out) => x - SIGMA * out,
      lcm: (x, out) => skip * x + toClean * (x - SIGMA * out),
      v_prediction: (x, out) => x / (1 + SIGMA ** 2) - (SIGMA / Math.hypot(1, SIGMA)) * out,
    };
    for (const [sampling, formula] of Object.entries(expected)) {
      const clean = await predicted(read(sampling));
      const values = Float32Array.from(x.data, (value, i) => formula(value, out.data[i]!));
      assert.ok(layerError(clean, Tensor.from(values, x.shape)) < 2e-6, sampling);
    }
    assert.deepEqual((await predicted(read("eps"))).data, eps.data);
    await refuses(() => read("cosine"), "host.missing", /cannot read its models as "cosine"/);
    await refuses(() => model.patch!({ node: "FreeU", inputs: {} }), "host.missing", /cannot apply FreeU/);
  });

  it("predicts several conditionings in one call, each as alone, with contexts of any length", async () => {
    const [a] = cond(1);
    const [, options] = a!;
    const b = [randn([1, 154, 64], { seed: 9 }), options] as unknown as typeof a;
    const both = Tensor.from(Float32Array.from([...x.data, ...x.data]), [2, 4, 8, 8]);
    const together = await model.predict!(both, SIGMA, [a!, b!]);
    for (const [i, entry] of [a!, b!].entries()) {
      const alone = await model.predict!(x, SIGMA, [entry]);
      const part = Tensor.from(together.data.slice(i * x.size, (i + 1) * x.size), x.shape);
      assert.ok(layerError(part, alone) < 1e-5);
    }
  });

  it("refuses what does not fit it", async () => {
    const wide = [[someContext(1, 128), {}]] as unknown as Conditioning;
    const width = /^UNet of tiny-sd1\.safetensors: expected a conditioning \[n, tokens, 64\], as its own text encoder/;
    await refuses(model.predict!(x, SIGMA, wide), "value.invalid", width);
    const odd = randn([1, 16, 8, 8], { seed: 1 });
    await refuses(model.predict!(odd, SIGMA, cond(1)), "tensor.bad-shape", /expected a latent \[B, 4, h, w\]/);
    await refuses(predicted(model, Number.NaN), "value.out-of-range", /expected a sigma of at least 0/);
    const three = randn([3, 4, 8, 8], { seed: 1 });
    const twice = [...cond(1), ...cond(2)];
    await refuses(model.predict!(three, SIGMA, twice), "tensor.bad-shape", /a multiple of 2 latents, .*, received 3/);
    const xl = await host().loadCheckpoint("tiny-sdxl.safetensors");
    const plain = [[someContext(1, 128), {}]] as unknown as Conditioning;
    await refuses(xl.model.predict!(x, SIGMA, plain), "value.invalid", /expected pooled_output \[n, 64\]/);
  });

  it("stops within a step when it is interrupted, and works on", async () => {
    const large = randn([1, 4, 128, 128], { seed: 1 });
    await model.predict!(x, SIGMA, cond(1));
    const controller = new AbortController();
    const work = model.predict!(large, SIGMA, cond(1), controller.signal);
    setImmediate(() => controller.abort());
    await assert.rejects(work);
    assert.deepEqual([...(await predicted(model)).shape], [1, 4, 8, 8]);
  });

  it("gives an inpainting model the part of mask and picture that lies in an entry's area", async () => {
    const { model: inpainting } = await host().loadCheckpoint("tiny-sd1-inpainting.safetensors");
    const latent = randn([1, 4, 16, 16], { seed: 4 });
    const mask = Tensor.from(
      Array.from({ length: 256 }, (_, i) => (i % 16 < 8 ? 1 : 0)),
      [1, 1, 16, 16],
    );
    const run = { sampling: inpainting.sampling, latent, negative: [], steps: 1 };
    const options = { concat_mask: mask, concat_latent_image: latent };
    const inArea = cond(1, { ...options, area: [8, 8, 0, 8] });
    const area = await inpainting.forRun!(run).predict(x, SIGMA, inArea);
    // the same picture cut by hand
    const cut = (of: Tensor, channels: number) =>
      Tensor.from(
        Array.from({ length: channels * 64 }, (_, i) => {
          const [channel, row, column] = [Math.floor(i / 64), Math.floor(i / 8) % 8, i % 8];
          return of.data[channel * 256 + row * 16 + column + 8]!;
        }),
        [1, channels, 8, 8],
      );
    const byHand = cond(1, { concat_mask: cut(mask, 1), concat_latent_image: cut(latent, 4) });
    const small = { ...run, latent: cut(latent, 4) };
    const expected = await inpainting.forRun!(small).predict(x, SIGMA, byHand);
    assert.ok(layerError(area, expected) < 1e-6);
    const whole = cond(1, { concat_mask: Tensor.full([1, 1, 8, 8], 1), concat_latent_image: cut(latent, 4) });
    const other = await inpainting.forRun!(small).predict(x, SIGMA, whole);
    assert.ok(layerError(other, expected) > 1e-3);
  });
});
