import assert from "node:assert/strict";
import { executeGraph, invokeNode, type Model, modelSampling, Tensor } from "latentkit";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { analyticEntry } from "../../../../helpers/sampling/analytic-model.js";

const SIDE = 4;
const ITEM = 4 * SIDE * SIDE;

/** A model whose estimate is 0 but NaN from an element on. */
const broken = (from: number): Model => ({
  sampling: modelSampling("sd15"),
  predict: async (x) => {
    const estimate = Tensor.zeros(x.shape);
    estimate.data.fill(Number.NaN, from);
    return estimate;
  },
});

const [positive, negative] = [[analyticEntry(0.5)], [analyticEntry(-0.5)]];
const sampler = { sampler: "euler", options: {} };
const latent = () => ({ samples: Tensor.zeros([2, 4, SIDE, SIDE]) });
const scheduled = { steps: 2, cfg: 1, sampler_name: "euler", scheduler: "normal", positive, negative };

const inputsOf: Record<string, (model: Model) => Record<string, unknown>> = {
  KSampler: (model) => ({ model, seed: 1, denoise: 1, ...scheduled, latent_image: latent() }),
  KSamplerAdvanced: (model) => ({
    model,
    ...scheduled,
    add_noise: "enable",
    noise_seed: 1,
    start_at_step: 0,
    end_at_step: 2,
    return_with_leftover_noise: "disable",
    latent_image: latent(),
  }),
  SamplerCustom: (model) => ({
    model,
    add_noise: true,
    noise_seed: 1,
    cfg: 1,
    positive,
    negative,
    sampler,
    sigmas: [4, 2, 0],
    latent_image: latent(),
  }),
  SamplerCustomAdvanced: (model) => ({
    noise: { seed: 1n, enabled: true },
    guider: { kind: "basic", model, positive },
    sampler,
    sigmas: [4, 2, 0],
    latent_image: latent(),
  }),
};

describe("sampling in a node", () => {
  const folder = temporaryFolder();
  for (const [key, inputs] of Object.entries(inputsOf)) {
    const messagesOf = async (model: Model) => {
      const messages: string[] = [];
      await invokeNode(key, inputs(model), { log: (message) => messages.push(message) });
      return messages;
    };

    it(`warns of a latent of ${key} with numbers that are not finite, and counts them`, async () => {
      const damage = "numbers are NaN or infinite; pictures of it will be black or damaged.";
      assert.deepEqual(await messagesOf(broken(0)), [`${2 * ITEM} of the latent's ${2 * ITEM} ${damage}`]);
      assert.deepEqual(await messagesOf(broken(ITEM)), [`${ITEM} of the latent's ${2 * ITEM} ${damage}`]);
      assert.deepEqual(await messagesOf(broken(2 * ITEM)), []);
    });
  }

  it("warns of noise levels above those of a flow", async () => {
    const model = { ...broken(2 * ITEM), sampling: modelSampling("sd3") };
    const latent_image = { samples: Tensor.zeros([1, 16, 2, 2]) };
    for (const [sigmas, warnings] of [
      [[14.6, 3, 0], ["sigmas: expected noise levels from 1 to 0, as sd3 has, received 14.60."]],
      [[1, 0.5, 0], []],
    ]) {
      const messages: string[] = [];
      const inputs = { ...inputsOf.SamplerCustom!(model), latent_image, sigmas };
      await invokeNode("SamplerCustom", inputs, { log: (message) => messages.push(message) });
      assert.deepEqual(messages, warnings);
    }
  });

  it("names its node in the warning of a run", async () => {
    const graph = {
      1: { class_type: "CheckpointLoaderSimple", inputs: { ckpt_name: "preview-sd15.safetensors" } },
      2: { class_type: "CLIPTextEncode", inputs: { clip: ["1", 1], text: "fog" } },
      3: { class_type: "EmptyLatentImage", inputs: { width: 32, height: 32, batch_size: 1 } },
      4: { class_type: "KSamplerSelect", inputs: { sampler_name: "lms" } },
      // lms divides by the distance of noise levels
      5: { class_type: "ManualSigmas", inputs: { sigmas: "1, 1, 1" } },
      6: {
        class_type: "SamplerCustom",
        inputs: {
          model: ["1", 0],
          add_noise: true,
          noise_seed: 1,
          cfg: 1,
          positive: ["2", 0],
          negative: ["2", 0],
          sampler: ["4", 0],
          sigmas: ["5", 0],
          latent_image: ["3", 0],
        },
      },
      7: { class_type: "VAEDecode", inputs: { samples: ["6", 0], vae: ["1", 2] } },
      8: { class_type: "SaveImage", inputs: { images: ["7", 0], filename_prefix: "black" } },
    };
    const messages: string[] = [];
    for await (const event of executeGraph(graph, { outputDir: folder() }))
      if (event.type === "warning") messages.push(event.message);
    const expected = "64 of the latent's 64 numbers are NaN or infinite; pictures of it will be black or damaged.";
    assert.deepEqual(messages, [`Node 6 (SamplerCustom): ${expected}`]);
  });
});
