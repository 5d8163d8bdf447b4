import assert from "node:assert/strict";
import { createPreviewHost, invokeNode, Tensor } from "latentkit";
import type { Conditioning } from "#src/host/types.js";
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

describe("ext pipeEdit", () => {
  it("changes a copy", async () => {
    const [pipe] = (await load()).result;
    const before = { ...pipe };
    Object.freeze(pipe);
    const latent = { samples: Tensor.zeros([1, 4, 2, 2]) };
    const positive: Conditioning = [[Tensor.zeros([1, 77, 8]), {}]];
    const [edited] = (await invokeNode("ext pipeEdit", { pipe, latent, positive })).result;
    assert.deepEqual(edited, { ...before, samples: latent, positive });
    assert.deepEqual(pipe, before);
    assert.equal(edited.loader_settings, pipe.loader_settings);
  });

  it("keeps everything where nothing is given", async () => {
    const [pipe] = (await load()).result;
    const [edited] = (await invokeNode("ext pipeEdit", { pipe })).result;
    assert.deepEqual(edited, pipe);
    assert.notEqual(edited, pipe);
  });

  it("refuses parts of the wrong type", async () => {
    for (const name of ["model", "positive", "negative", "latent", "vae", "clip"]) {
      await refuses(invokeNode("ext pipeEdit", { pipe: {}, [name]: 5 }), "input.wrong-type", new RegExp(`"${name}"`));
    }
  });
});
