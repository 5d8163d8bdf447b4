import assert from "node:assert/strict";
import { type Conditioning, invokeNode, Tensor } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { fakeClip } from "../../../../helpers/graph/fake-clip.js";
import { tellingClip } from "../../../../helpers/graph/telling-clip.js";

describe("TextEncodeQwenImageEditPlus", () => {
  const inputs = { prompt: "in one picture" };

  it("encodes a prompt without pictures", async () => {
    const { clip, seen } = tellingClip();
    const { result } = await invokeNode("TextEncodeQwenImageEditPlus", { clip, ...inputs });
    assert.deepEqual(seen, [{ texts: { qwen25_7b: "in one picture" }, pictures: [] }]);
    assert.deepEqual((result[0] as Conditioning)[0]![1], { told: 1 });
  });

  it("shows the clip small pictures, and refers to large ones with sides that are multiples of 8", async () => {
    const { clip, seen } = tellingClip();
    const vae = { encode: async (image: Tensor) => image, decode: async (latent: Tensor) => latent };
    const [image1, image3] = [Tensor.full([1, 30, 60, 3], 0.5), Tensor.full([1, 50, 50, 3], 0.25)];
    const { result } = await invokeNode("TextEncodeQwenImageEditPlus", { clip, ...inputs, vae, image1, image3 });
    const shapes = (tensors: readonly Tensor[]) => tensors.map(({ shape }) => shape);
    const [{ pictures }] = seen as unknown as [{ pictures: Tensor[] }];
    assert.deepEqual(shapes(pictures), [
      [1, 272, 543, 3],
      [1, 384, 384, 3],
    ]);
    const references = (result[0] as Conditioning)[0]![1].reference_latents as Tensor[];
    assert.deepEqual(shapes(references), [
      [1, 728, 1448, 3],
      [1, 1024, 1024, 3],
    ]);
  });

  it("says what the host lacks", async () => {
    const run = invokeNode("TextEncodeQwenImageEditPlus", { clip: fakeClip("l"), ...inputs });
    await refuses(run, "host.missing", /it has no clip with the encoder qwen25_7b\.$/);
  });
});
