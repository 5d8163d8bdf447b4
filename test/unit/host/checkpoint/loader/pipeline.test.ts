import assert from "node:assert/strict";
import { mkdirSync, readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { executeGraph, type LatentkitError, modelSampling, Tensor } from "latentkit";
import { type CheckpointHost, createCheckpointHost } from "#src/host/checkpoint/index.js";
import { OnnxGraph } from "#src/host/checkpoint/onnx/graph.js";
import type { Checkpoint } from "#src/host/types.js";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { FLAVOURS, json, writeExportedFolder } from "../../../../helpers/models/exported-folder.js";
import { noiseTensor } from "../../../../helpers/models/noise.js";
import { recognised } from "../../../../helpers/models/recognised.js";
import { f32, writeWeights } from "../../../../helpers/models/weight-file.js";

const graphOf = (ckpt_name: string) => ({
  1: { class_type: "CheckpointLoaderSimple", inputs: { ckpt_name } },
  2: { class_type: "CLIPTextEncode", inputs: { clip: ["1", 1], text: "a red cube, (bright:1.3)" } },
  3: { class_type: "CLIPTextEncode", inputs: { clip: ["1", 1], text: "blurry" } },
  4: { class_type: "EmptyLatentImage", inputs: { width: 64, height: 48, batch_size: 2 } },
  5: {
    class_type: "KSampler",
    inputs: {
      model: ["1", 0],
      positive: ["2", 0],
      negative: ["3", 0],
      latent_image: ["4", 0],
      seed: 7,
      steps: 3,
      cfg: 4,
      sampler_name: "euler",
      scheduler: "normal",
      denoise: 1,
    },
  },
  6: { class_type: "VAEDecode", inputs: { samples: ["5", 0], vae: ["1", 2] } },
});

function largestDifference(a: Tensor, b: Tensor): number {
  assert.deepEqual([...a.shape], [...b.shape]);
  return a.data.reduce((most, value, i) => Math.max(most, Math.abs(value - b.data[i]!)), 0);
}

describe("loadPipeline @long", () => {
  const folder = temporaryFolder();
  const hosts: CheckpointHost[] = [];
  const hostOf = (): CheckpointHost => {
    const host = createCheckpointHost({ models: folder(), threads: 1 });
    hosts.push(host);
    return host;
  };
  const at = (name = "exported") => join(folder(), "checkpoints", name);
  beforeEach(() => {
    mkdirSync(join(folder(), "checkpoints"));
  });
  afterEach(async () => {
    for (const host of hosts.splice(0)) await host.close();
  });

  /** A golden checkpoint as a file and as a folder. */
  async function exported(name: string, flavour: keyof typeof FLAVOURS = "optimum"): Promise<void> {
    writeExportedFolder(at(), await recognised(name, join(folder(), "checkpoints")), FLAVOURS[flavour]);
  }

  async function picture(host: CheckpointHost, name: string): Promise<{ latent: Tensor; image: Tensor }> {
    const outputs = new Map<string, readonly unknown[]>();
    for await (const event of executeGraph(graphOf(name), { host, targets: ["6"] })) {
      if (event.type === "node-error") throw event.error;
      if (event.type === "node-done") outputs.set(event.nodeId, event.outputs);
    }
    const [{ samples }] = outputs.get("5") as [{ samples: Tensor }];
    return { latent: samples, image: outputs.get("6")![0] as Tensor };
  }

  for (const [name, flavour, tolerance] of [
    ["tiny-sd1", "optimum", 1e-5],
    ["tiny-sd1", "old optimum", 1e-5],
    ["tiny-sd1", "script", 1e-5],
    ["tiny-sd1", "halves", 5e-3],
    ["tiny-sd2-v", "optimum", 1e-5],
    ["tiny-sd2-v", "script", 1e-5],
    ["tiny-sdxl", "optimum", 1e-5],
  ] as const)
    it(`renders the picture of ${name} from an export of ${flavour}`, async () => {
      await exported(name, flavour);
      const host = hostOf();
      assert.deepEqual(host.checkpoints(), ["exported", `${name}.safetensors`]);
      const [own, other] = [await picture(host, `${name}.safetensors`), await picture(host, "exported")];
      const largest = own.latent.data.reduce((most, value) => Math.max(most, Math.abs(value)), 1);
      const difference = largestDifference(own.latent, other.latent) / largest;
      assert.ok(difference <= tolerance, `latents differ by ${difference}`);
      const pixels = largestDifference(own.image, other.image);
      assert.ok(pixels <= tolerance, `pictures differ by ${pixels}`);
      assert.notEqual(new Set(own.image.data).size, 1);
    });

  async function both(name: string): Promise<readonly [Checkpoint, Checkpoint]> {
    const host = hostOf();
    return [await host.loadCheckpoint(`${name}.safetensors`), await host.loadCheckpoint("exported")];
  }

  it("encodes a picture to the mean", async () => {
    await exported("tiny-sd1");
    const image = noiseTensor([1, 24, 19, 3]);
    const [own, other] = await both("tiny-sd1");
    const [expected, received] = [await own.vae.encode(image), await other.vae.encode(image, assert.fail)];
    assert.deepEqual([...received.shape], [1, 4, 3, 2]);
    assert.ok(largestDifference(expected, received) <= 1e-5);
  });

  it("warns of an encoder that draws noise", async () => {
    await exported("tiny-sd1", "script");
    const [, { vae }] = await both("tiny-sd1");
    const warnings: string[] = [];
    await vae.encode(noiseTensor([1, 16, 16, 3]), (text) => warnings.push(text));
    assert.match(warnings.join(), /exported draws noise without a seed/);
  });

  it("takes earlier layers of SDXL's text encoders, and refuses those that an export lacks", async () => {
    await exported("tiny-sdxl");
    const [own, other] = await both("tiny-sdxl");
    const ids = [[49406, 320, 736, ...new Array<number>(74).fill(49407)]];
    for (const layer of [-1, -2, -24])
      for (const index of [0, 1]) {
        const [expected, received] = await Promise.all(
          [own, other].map(({ clip }) => clip.atLayer!(layer).encoders[index]!.encode(ids)),
        );
        assert.ok(largestDifference(expected!.cond, received!.cond) <= 1e-5, `layer ${layer}`);
        assert.ok(largestDifference(expected!.pooled!, received!.pooled!) <= 1e-5);
      }
    rmSync(at(), { recursive: true });
    await exported("tiny-sd1");
    const { clip } = await hostOf().loadCheckpoint("exported");
    const encoded = clip.atLayer!(-2).encoders[0]!.encode(ids);
    await refuses(encoded, "value.invalid", /expected clip layer -1, received -2.*num_hidden_layers/);
  });

  it("gives the refiner one encoder and five sizes", async () => {
    await exported("tiny-sdxl");
    rmSync(join(at(), "text_encoder"), { recursive: true });
    rmSync(join(at(), "unet/config.json"));
    const graph = new OnnxGraph("sum");
    const sample = graph.input("sample", "float", ["batch", 4, "height", "width"]);
    graph.input("timestep", "float", []);
    graph.input("encoder_hidden_states", "float", ["batch", "sequence", 8]);
    graph.input("text_embeds", "float", ["batch", 6]);
    const sizes = graph.input("time_ids", "float", ["batch", 5]);
    const sum = graph.node("Reshape", [graph.node("ReduceSum", [sizes, graph.ints([1])]), graph.ints([-1, 1, 1, 1])]);
    const none = graph.node("Sub", [sample, sample]);
    graph.output(graph.node("Add", [none, sum]), "out_sample", "float", ["batch", 4, "height", "width"]);
    writeFileSync(join(at(), "unet/model.onnx"), graph.encode({ overridable: false }).bytes);
    const { model, clip } = await hostOf().loadCheckpoint("exported");
    assert.deepEqual(
      clip.encoders.map(({ name }) => name),
      ["g"],
    );
    const options = { pooled_output: Tensor.zeros([1, 6]), aesthetic_score: 5 };
    const x = Tensor.zeros([1, 4, 2, 3]);
    const clean = await model.predict!(x, 1, [[Tensor.zeros([1, 77, 8]), options]]);
    // 16 and 24 pixels, no crop, a score of 5
    assert.deepEqual([...new Set(clean.data)], [-45]);
  });

  it("lists a folder of models/diffusers, and sees that a file of it has changed", async () => {
    const checkpoint = await recognised("tiny-sd1", folder());
    const path = join(folder(), "diffusers/art/exported");
    writeExportedFolder(path, checkpoint);
    const host = hostOf();
    assert.deepEqual(host.checkpoints(), ["art/exported"]);
    const first = await host.loadCheckpoint("exported");
    assert.equal(await host.loadCheckpoint("art\\exported"), first);
    json(path, "vae_decoder/config.json", { scaling_factor: 0.5 });
    const second = await host.loadCheckpoint("exported");
    assert.equal(first.model.sampling.latentFormat.scaleFactor, 0.18215);
    assert.equal(second.model.sampling.latentFormat.scaleFactor, 0.5);
  });

  it("reads the schedule", async () => {
    await exported("tiny-sd2-v");
    const file = join(at(), "scheduler/scheduler_config.json");
    const config = JSON.parse(readFileSync(file, "utf8"));
    const host = hostOf();
    const { sigmaMax } = (await host.loadCheckpoint("exported")).model.sampling;
    assert.ok(Math.abs(sigmaMax - 14.6146) < 1e-3);
    writeFileSync(file, JSON.stringify({ ...config, rescale_betas_zero_snr: true }));
    assert.ok((await host.loadCheckpoint("exported")).model.sampling.sigmaMax > 1000);
    for (const [key, value, pattern] of [
      ["beta_schedule", "linear", /beta_schedule of scheduler\/scheduler_config.json to be "scaled_linear"/],
      ["beta_start", -1, /beta_start.*a number above 0, received -1/],
      ["prediction_type", "flow", /prediction_type.*"flow"/],
      ["trained_betas", [1], /trained_betas/],
      ["num_train_timesteps", 50, /num_train_timesteps.*1000, received 50/],
    ] as const) {
      writeFileSync(file, JSON.stringify({ ...config, [key]: value }));
      await refuses(host.loadCheckpoint("exported"), /^model\./, /^Model "exported": expected /, pattern);
    }
  });

  describe("refuses", () => {
    const load = () => hostOf().loadCheckpoint("exported");
    const unet = () => join(at(), "unet/model.onnx");

    /** Predicts with the UNet of the folder, for an entry with these options. */
    async function predict(options: Record<string, unknown> = {}): Promise<Tensor> {
      const { model } = await load();
      const config = JSON.parse(readFileSync(join(at(), "unet/config.json"), "utf8"));
      return model.predict!(noiseTensor([1, 4, 8, 8]), 1, [
        [Tensor.zeros([1, 77, config.cross_attention_dim]), options],
      ]);
    }

    it("pipelines of other classes by name", async () => {
      for (const name of ["FluxPipeline", "StableDiffusionInstructPix2PixPipeline", "../../etc", 7, undefined, {}]) {
        json(at(), "model_index.json", { _class_name: name });
        const { message } = (await refuses(load(), "model.unsupported")) as LatentkitError;
        if (typeof name === "string") assert.ok(message.includes(JSON.stringify(name)), message);
      }
    });

    it("a damaged, overlong or deep model_index.json", async () => {
      json(at(), "model_index.json", {});
      for (const text of ["{", "[]", `"${"x".repeat(2 ** 20)}"`, "[".repeat(500_000), ""]) {
        writeFileSync(join(at(), "model_index.json"), text);
        await refuses(load(), "model.invalid", /^Model "exported": expected model_index.json to be a JSON object/);
      }
    });

    it("a folder without a network, and one with other formats", async () => {
      await exported("tiny-sd1");
      rmSync(join(at(), "unet/model.onnx"));
      await refuses(load(), "model.invalid", /^Model "exported": expected unet\/model.onnx, received a folder without/);
      writeFileSync(join(at(), "unet/diffusion_pytorch_model.safetensors"), "");
      await refuses(load(), "model.unsupported", /received unet\/diffusion_pytorch_model.safetensors/);
      rmSync(join(at(), "scheduler"), { recursive: true });
      await refuses(load(), "model.unsupported", /beta_schedule of scheduler.*received undefined/);
    });

    it("networks of other sizes", async () => {
      await exported("tiny-sd1");
      for (const [file, values, pattern] of [
        ["unet/config.json", { in_channels: 8 }, /in_channels of unet\/config.json to be 4 or 9, received 8/],
        ["text_encoder/config.json", { vocab_size: 1000 }, /vocab_size.*49408, received 1000/],
        ["vae_decoder/config.json", { latents_mean: [0] }, /latents_mean.*to be none/],
        ["vae_decoder/config.json", { latent_channels: 16 }, /latent_channels.*4, received 16/],
      ] as const) {
        const before = readFileSync(join(at(), file));
        json(at(), file, values);
        await refuses(load(), "model.unsupported", pattern);
        writeFileSync(join(at(), file), before);
      }
    });

    it("a UNet with other inputs and outputs, and a file that is not a model", async () => {
      await exported("tiny-sd1");
      const original = readFileSync(unet()).toString("latin1");
      const rename = (from: string, to: string) => writeFileSync(unet(), original.replaceAll(from, to), "latin1");
      rename("encoder_hidden_states", "encoder_hidden_stat3s");
      await refuses(
        predict(),
        "model.unsupported",
        /^UNet of exported: expected a model with the inputs .*, received one more, "encoder_hidden_stat3s"\.$/,
      );
      rename("out_sample", "out_simple");
      await refuses(
        predict(),
        "model.unsupported",
        /expected a model with an output "out_sample", received "out_simple"/,
      );
      writeFileSync(unet(), "no model");
      await refuses(predict(), "runtime.failed", /^UNet of exported, while it was loaded: /);
    });

    it("a UNet whose output has another shape", async () => {
      await exported("tiny-sd1");
      const graph = new OnnxGraph("mean");
      const sample = graph.input("sample", "float", ["batch", 4, "height", "width"]);
      graph.input("timestep", "float", []);
      graph.input("encoder_hidden_states", "float", ["batch", "sequence", "width"]);
      const mean = graph.node("ReduceMean", [sample, graph.ints([2, 3])]);
      graph.output(mean, "out_sample", "float", ["batch", 4, 1, 1]);
      writeFileSync(unet(), graph.encode({ overridable: false }).bytes);
      await refuses(
        predict(),
        "model.invalid",
        /^UNet of exported: expected an output of shape \[1, 4, 8, 8\], received \[1, 4, 1, 1\]\.$/,
      );
    });

    it("weights outside a network's folder", async () => {
      await exported("tiny-sd1");
      const [own, outside] = ["model.onnx_data", "../onnx_weights"];
      assert.equal(own.length, outside.length);
      writeFileSync(unet(), readFileSync(unet()).toString("latin1").replaceAll(own, outside), "latin1");
      renameSync(join(at(), "unet", own), join(at(), "unet", outside));
      await refuses(predict(), "runtime.failed", /^UNet of exported, while it was loaded: .*escapes model directory/);
    });

    it("a file that has changed since it was loaded", async () => {
      await exported("tiny-sd1");
      const { vae } = await load();
      utimesSync(join(at(), "vae_decoder/model.onnx_data"), 1, 1);
      await refuses(
        vae.decode(noiseTensor([1, 4, 2, 2])),
        "model.invalid",
        /^Model "exported\/vae_decoder\/model\.onnx_data" has changed since/,
      );
    });

    it("fractional timesteps if it takes whole ones", async () => {
      await exported("tiny-sd1", "old optimum");
      const { model } = await load();
      const patched = model.patch!({ node: "ModelSamplingContinuousEDM", inputs: { sampling: "eps" } });
      const { cross_attention_dim: width } = JSON.parse(readFileSync(join(at(), "unet/config.json"), "utf8"));
      const latent = noiseTensor([1, 4, 8, 8]);
      const run = { sampling: modelSampling("svd"), latent, negative: [], steps: 1 };
      const predicted = patched.forRun!(run).predict(latent, 2, [[Tensor.zeros([1, 77, width]), {}]]);
      await refuses(predicted, "value.invalid", /^UNet of exported: expected a whole timestep/);
    });

    it("LoRAs and ControlNets", async () => {
      await exported("tiny-sd1");
      mkdirSync(join(folder(), "loras"));
      writeWeights(join(folder(), "loras/a.safetensors"), {
        "lora_unet_mid_block_resnets_0_conv1.lora_up.weight": f32([1, 1]),
        "lora_unet_mid_block_resnets_0_conv1.lora_down.weight": f32([1, 1]),
      });
      const host = hostOf();
      const { model, clip } = await host.loadCheckpoint("exported");
      const lora = await host.loadFile!("loras", "a.safetensors");
      await refuses(
        () => lora.apply(model, clip, { model: 1, clip: 1 }),
        "host.missing",
        /^UNet of exported is an exported ONNX model: LoRAs cannot change its weights\.$/,
      );
      await refuses(
        predict({ control: {} }),
        "host.missing",
        /^UNet of exported is an exported ONNX model: ControlNets do not work with it\.$/,
      );
    });
  });
});
