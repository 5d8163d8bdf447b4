import assert from "node:assert/strict";
import { invokeNode, Tensor } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { FILES } from "../../../../helpers/graph/file-host.js";

describe("CLIPVisionEncode", () => {
  const encode = async (image: Tensor, crop: string) =>
    (await invokeNode("CLIPVisionEncode", { clip_vision: FILES.clip_vision(), image, crop })).result[0];

  it("encodes colours without alpha, cut or not", async () => {
    assert.deepEqual(await encode(Tensor.zeros([2, 8, 8, 4]), "none"), { shape: [2, 8, 8, 3], crop: "none" });
    assert.deepEqual(await encode(Tensor.zeros([1, 8, 9, 3]), "center"), { shape: [1, 8, 9, 3], crop: "center" });
  });

  it("refuses images without colours", async () => {
    await refuses(encode(Tensor.zeros([1, 8, 8, 1]), "none"), "tensor.bad-shape", /at least 3 channels/);
  });
});
