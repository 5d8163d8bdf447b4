import assert from "node:assert/strict";
import { type Conditioning, invokeNode, Tensor } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { fakeClip } from "../../../../helpers/graph/fake-clip.js";
import { tellingClip } from "../../../../helpers/graph/telling-clip.js";

describe("TextEncodeQwenImageEdit", () => {
  const inputs = { prompt: "make it red" };

  it("encodes a prompt without a picture", async () => {
    const { clip, seen } = tellingClip();
    const { result } = await invokeNode("TextEncodeQwenImageEdit", { clip, ...inputs });
    assert.deepEqual(seen, [{ texts: { qwen25_7b: "make it red" }, pictures: [] }]);
    assert.deepEqual((result[0] as Conditioning)[0]![1], { told: 1 });
  });

  it("shows the clip a picture of about a megapixel, whose latent is a reference", async () => {
    const { clip, seen } = tellingClip();
    const vae = { encode: async (image: Tensor) => image, decode: async (latent: Tensor) => latent };
    const image = Tensor.full([1, 30, 60, 4], 0.5);
    const { result } = await invokeNode("TextEncodeQwenImageEdit", { clip, ...inputs, vae, image });
    const [{ pictures }] = seen as unknown as [{ pictures: Tensor[] }];
    assert.deepEqual(pictures[0]!.shape, [1, 724, 1448, 3]);
    const [reference] = (result[0] as Conditioning)[0]![1].reference_latents as [Tensor];
    assert.deepEqual(reference.shape, [1, 724, 1448, 3]);
    assert.equal(reference.data[0], 0.5);
  });

  it("says what the host lacks", async () => {
    const image = Tensor.full([1, 8, 8, 3], 0.5);
    const run = invokeNode("TextEncodeQwenImageEdit", { clip: fakeClip("l"), ...inputs, image });
    await refuses(run, "host.missing", /it has no clip with the encoder qwen25_7b\.$/);
  });
});
