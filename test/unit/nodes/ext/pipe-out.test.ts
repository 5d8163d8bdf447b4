import assert from "node:assert/strict";
import { createPreviewHost, invokeNode } from "latentkit";
import { refuses } from "../../../helpers/errors.js";

const host = createPreviewHost();
const SETTINGS = {
  ckpt_name: "preview-sd15.safetensors",
  positive: "a (fox:1.3)",
  negative: "blurry",
  batch_size: 2,
  empty_latent_width: 128,
  empty_latent_height: 72,
};
const load = (inputs: object = {}) => invokeNode("ext pipeLoader", { ...SETTINGS, ...inputs }, { host });

describe("ext pipeOut", () => {
  it("takes a pipe apart", async () => {
    const [pipe] = (await load()).result;
    const { result } = await invokeNode("ext pipeOut", { pipe });
    assert.deepEqual(result, [pipe, pipe.model, pipe.positive, pipe.negative, pipe.samples, pipe.vae, pipe.clip]);
    assert.equal(result[0], pipe);
  });

  it("gives null for what is not there", async () => {
    const { result } = await invokeNode("ext pipeOut", { pipe: {} });
    assert.deepEqual(result, [{}, null, null, null, null, null, null]);
  });

  it("refuses what is no pipe", async () => {
    for (const pipe of [undefined, null, "pipe", []]) {
      await refuses(invokeNode("ext pipeOut", { pipe }), /^input\./, /input "pipe"/);
    }
  });
});
