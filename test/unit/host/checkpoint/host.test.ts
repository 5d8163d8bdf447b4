import assert from "node:assert/strict";
import { join } from "node:path";
import { render } from "latentkit";
import { createCheckpointHost } from "latentkit/models";
import { refuses } from "../../../helpers/errors.js";
import { filesIn, hashesIn, temporaryFolder } from "../../../helpers/folders.js";
import { tinyHost } from "../../../helpers/models/tiny-host.js";

/** A graph of the original pipe loader, with a VAE, an earlier layer of the clip and a LoRA of its own. */
const pipeGraph = (changes: object) => ({
  "1": {
    class_type: "ext pipeLoader",
    inputs: {
      ckpt_name: "tiny-sd1.safetensors",
      positive: "a fox",
      negative: "text",
      batch_size: 1,
      empty_latent_width: 64,
      empty_latent_height: 64,
      ...changes,
    },
  },
  "2": {
    class_type: "KSampler",
    inputs: {
      ...{ seed: 1, steps: 2, cfg: 4, sampler_name: "euler", scheduler: "normal", denoise: 1 },
      ...{ model: ["1", 1], positive: ["3", 2], negative: ["3", 3], latent_image: ["3", 4] },
    },
  },
  "3": { class_type: "ext pipeOut", inputs: { pipe: ["1", 0] } },
  "4": { class_type: "VAEDecode", inputs: { samples: ["2", 0], vae: ["3", 5] } },
  "5": { class_type: "SaveImage", inputs: { images: ["4", 0], filename_prefix: "pipe" } },
});

describe("createCheckpointHost", function () {
  this.timeout(60_000);
  const folder = temporaryFolder();
  const host = tinyHost();

  it("lists the files of each kind that it loads", () => {
    assert.ok(host().checkpoints().includes("tiny-sd1.safetensors"));
    assert.deepEqual(host().files!("loras"), ["tiny-sd1-lora.safetensors"]);
    assert.deepEqual(host().files!("vae"), ["tiny-taesd.safetensors", "tiny-vae.safetensors"]);
    assert.equal(host().files!("clip_vision"), undefined);
    assert.equal(host().preview, false);
    assert.ok(Object.isFrozen(createCheckpointHost({ models: folder() })));
  });

  it("loads nothing of other kinds", async () => {
    await refuses(host().loadFile!("clip_vision", "x"), "host.missing", /it loads no clip_vision/);
  });

  it("refuses options that are not its own, and folders that do not exist", async () => {
    const make = (options: object) => () => createCheckpointHost(options as never);
    await refuses(make({}), /./, /models/);
    await refuses(make({ models: [] }), /./, /a folder or a list of folders/);
    await refuses(make({ models: folder(), threds: 1 }), /./, /threds/);
    await refuses(make({ models: join(folder(), "none") }), "config.invalid", /none/);
  });

  it("serves the pipe loader with a VAE, an earlier layer of the clip and a LoRA", async () => {
    const of = async (name: string, changes: object) => {
      const outputDir = join(folder(), name);
      const { status, error } = await render(pipeGraph(changes), { host: host(), outputDir });
      assert.equal(status, "success", error?.message);
      assert.equal(filesIn(outputDir).length, 1);
      return Object.values(hashesIn(outputDir))[0];
    };
    const pictures = [
      await of("plain", {}),
      await of("vae", { vae_name: "tiny-vae.safetensors" }),
      await of("taesd", { vae_name: "tiny-taesd.safetensors" }),
      await of("skip", { clip_skip: -2 }),
      await of("lora", { lora_name: "tiny-sd1-lora.safetensors", lora_model_strength: 0.5, lora_clip_strength: 0.5 }),
    ];
    assert.equal(new Set(pictures).size, pictures.length);
  });
});
