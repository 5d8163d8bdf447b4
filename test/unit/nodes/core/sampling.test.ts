import assert from "node:assert/strict";
import {
  createPreviewHost,
  createRegistry,
  defineNode,
  executeGraph,
  invokeNode,
  type Latent,
  type Model,
  modelSampling,
  randn,
  registry,
  Tensor,
} from "latentkit";
import { eventsUntil } from "../../../helpers/errors.js";
import { temporaryFolder } from "../../../helpers/folders.js";
import { analyticEntry, analyticModel } from "../../../helpers/sampling/analytic-model.js";
import { assertClose, assertSameBits } from "../../../helpers/tensor/bits.js";

describe("KSampler", () => {
  const inputs = (model: unknown) => ({
    model,
    seed: 1,
    steps: 4,
    cfg: 2,
    sampler_name: "euler",
    scheduler: "normal",
    positive: [analyticEntry(0.5)],
    negative: [analyticEntry(-0.5)],
    latent_image: { samples: Tensor.zeros([1, 4, 4, 4]) },
    denoise: 1,
  });

  it("reports every step of every step's total", async () => {
    const { model } = analyticModel(modelSampling("sd15"));
    const steps: unknown[] = [];
    const own = registry.get("KSampler")!;
    const context = {
      signal: new AbortController().signal,
      progress: (value: number, max: number) => steps.push([value, max]),
    };
    await own.run({ ...inputs(model), seed: 1n }, context as never);
    assert.deepEqual(steps, [
      [1, 4],
      [2, 4],
      [3, 4],
      [4, 4],
    ]);
  });

  it("refuses a model that has a schedule alone, naming it", async () => {
    await assert.rejects(invokeNode("KSampler", inputs({ sampling: modelSampling("sd15") })), {
      code: "host.missing",
      message: "KSampler: Model sd15 cannot denoise: its host provides only the noise schedule.",
    });
  });

  it("returns the input itself if denoise is 0, also of a model that cannot denoise", async () => {
    const all = { ...inputs({ sampling: modelSampling("sd15") }), denoise: 0 };
    const { result } = await invokeNode("KSampler", all);
    assert.equal((result[0] as { samples: Tensor }).samples, all.latent_image.samples);
  });

  it("refuses more steps behind denoise than can be scheduled", async () => {
    const { model } = analyticModel(modelSampling("sd15"));
    await assert.rejects(invokeNode("KSampler", { ...inputs(model), steps: 10000, denoise: 0.001 }), {
      code: "value.out-of-range",
    });
  });

  it("starts the CPU's noise, as its receipt says", () => {
    assert.equal(registry.get("KSampler")!.noiseStream!({}), "cpu");
  });

  it("emits a progress event for each step in a graph, and stops within a step", async () => {
    const { model, calls } = analyticModel(modelSampling("sd15"));
    // a model on another machine: the event loop turns during its calls
    const predict: typeof model.predict = async (...call) => {
      await new Promise((resolve) => setImmediate(resolve));
      return model.predict(...call);
    };
    const source = defineNode({
      key: "Source",
      inputs: {},
      outputs: { MODEL: "MODEL", CONDITIONING: "CONDITIONING" },
      run: () => ({ MODEL: { ...model, predict }, CONDITIONING: [analyticEntry(0)] }),
    });
    const { model: _, latent_image: __, ...settings } = inputs(model);
    const links = { model: ["1", 0], positive: ["1", 1], negative: ["1", 1], latent_image: ["2", 0] };
    const graph = {
      "1": { class_type: "Source", inputs: {} },
      "2": { class_type: "EmptyLatentImage", inputs: { width: 64, height: 64, batch_size: 1 } },
      "3": { class_type: "KSampler", inputs: { ...settings, ...links, steps: 20 } },
    };
    const nodes = createRegistry([source, registry.get("KSampler")!, registry.get("EmptyLatentImage")!]);
    const abort = new AbortController();
    const options = { registry: nodes, host: createPreviewHost(), targets: ["3"], signal: abort.signal };
    const seen: unknown[] = [];
    let done = "";
    await eventsUntil(abort.signal, executeGraph(graph, options), (event) => {
      if (event.type === "progress") seen.push([event.nodeId, event.value, event.max]);
      if (event.type === "progress" && event.value === 3) abort.abort();
      if (event.type === "run-done") done = event.status;
    });
    assert.deepEqual(seen.slice(0, 3), [
      ["3", 1, 20],
      ["3", 2, 20],
      ["3", 3, 20],
    ]);
    assert.equal(done, "interrupted");
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert.ok(calls.length <= 5, `${calls.length} model calls, 3 steps before the abort`);
  });
});

describe("KSamplerAdvanced", () => {
  const { model } = analyticModel(modelSampling("sd3"));
  const run = async (latent_image: Latent, settings: Record<string, unknown>) => {
    const { result } = await invokeNode("KSamplerAdvanced", {
      model,
      add_noise: "enable",
      noise_seed: 7,
      steps: 6,
      cfg: 2,
      sampler_name: "euler",
      scheduler: "simple",
      positive: [analyticEntry(0.5)],
      negative: [analyticEntry(-0.5)],
      latent_image,
      start_at_step: 0,
      end_at_step: 10000,
      return_with_leftover_noise: "disable",
      ...settings,
    });
    return result[0] as Latent;
  };
  const empty = (): Latent => ({ samples: Tensor.zeros([1, 16, 4, 4]) });

  it("gives in two stages what it gives in one", async () => {
    const whole = await run(empty(), {});
    const first = await run(empty(), { end_at_step: 2, return_with_leftover_noise: "enable" });
    const second = await run(first, { add_noise: "disable", start_at_step: 2 });
    assertClose(second.samples, whole.samples, () => 1e-5, "two stages");
  });

  it("returns the input itself if the window is empty", async () => {
    const input = empty();
    for (const window of [{ start_at_step: 6 }, { start_at_step: 3, end_at_step: 3 }, { end_at_step: 0 }])
      assert.equal((await run(input, window)).samples, input.samples, JSON.stringify(window));
  });

  it("starts the CPU's noise, as its receipt says", () => {
    assert.equal(registry.get("KSamplerAdvanced")!.noiseStream!({}), "cpu");
  });
});

describe("SamplerCustom", () => {
  const { model } = analyticModel(modelSampling("sd15"));
  const inputs = (sigmas: unknown, sampler: unknown = { sampler: "euler", options: {} }) => ({
    model,
    add_noise: true,
    noise_seed: 3,
    cfg: 2,
    positive: [analyticEntry(0.5)],
    negative: [analyticEntry(-0.5)],
    sampler,
    sigmas,
    latent_image: { samples: Tensor.full([1, 4, 4, 4], 0.5), name: "carried along" },
  });
  const outputs = async (sigmas: unknown, sampler?: unknown) =>
    (await invokeNode("SamplerCustom", inputs(sigmas, sampler))).result as [Latent, Latent];

  it("takes sigmas as a tensor, an array of floats or a list", async () => {
    const [expected] = await outputs(Tensor.from([4, 2, 0], [3]));
    for (const sigmas of [Float32Array.of(4, 2, 0), [4, 2, 0]])
      assertSameBits((await outputs(sigmas))[0].samples, expected.samples);
  });

  it("has the last estimate as its second output, and unknown keys in both", async () => {
    const [output, denoised] = await outputs([4, 2, 1]);
    assert.notDeepEqual(output.samples.data, denoised.samples.data);
    const [end, same] = await outputs([4, 2, 0]);
    assertSameBits(end.samples, same.samples);
    for (const latent of [output, denoised]) assert.equal(latent.name, "carried along");
  });

  it("returns one object twice if there was no step", async () => {
    const [output, denoised] = await outputs([4]);
    assert.equal(output, denoised);
  });

  it("refuses options that the sampler does not have, or of another type", async () => {
    const refused = (options: Record<string, unknown>) => outputs([4, 2, 0], { sampler: "euler", options });
    await assert.rejects(refused({ no_such: 1 }), { code: "value.invalid" });
    await assert.rejects(refused({ ancestral_seed: "other" }), {
      message: 'SamplerCustom, sampler euler, ancestral_seed: expected one of next, same, received "other".',
    });
    await assert.rejects(outputs([4, 2, 0], { sampler: "sa_solver", options: { tau_func: 5 } }), {
      message: "SamplerCustom, sampler sa_solver, tau_func: expected a function, received 5.",
    });
  });
});

describe("SamplerCustomAdvanced", () => {
  it("gives what SamplerCustom gives with the same parts", async () => {
    const { model } = analyticModel(modelSampling("sd15"));
    const [positive, negative] = [[analyticEntry(0.5)], [analyticEntry(-0.5)]];
    const common = {
      sampler: { sampler: "euler_ancestral", options: {} },
      sigmas: [4, 2, 1, 0],
      latent_image: { samples: Tensor.full([2, 4, 4, 4], 0.5), batch_index: [3, 1] },
    };
    const custom = { ...common, model, add_noise: true, noise_seed: 3, cfg: 2, positive, negative };
    const expected = (await invokeNode("SamplerCustom", custom)).result as [Latent, Latent];
    const { result } = await invokeNode("SamplerCustomAdvanced", {
      ...common,
      noise: { seed: 3n, enabled: true },
      guider: { kind: "cfg", model, positive, negative, cfg: 2 },
    });
    const [output, denoised] = result as [Latent, Latent];
    assertSameBits(output.samples, expected[0].samples);
    assertSameBits(denoised.samples, expected[1].samples);
    assert.deepEqual(output.batch_index, [3, 1]);
  });
});

describe("RandomNoise", () => {
  it("is the noise of any seed up to 2^64 - 1, and starts the CPU's stream", async () => {
    const { result } = await invokeNode("RandomNoise", { noise_seed: "18446744073709551615" });
    assert.deepEqual(result[0], { seed: 2n ** 64n - 1n, enabled: true });
    assert.equal(registry.get("RandomNoise")!.noiseStream!({}), "cpu");
  });
});

describe("DisableNoise", () => {
  it("is without initial noise, and seeds a sampler's own with 0", async () => {
    const { result } = await invokeNode("DisableNoise", {});
    assert.deepEqual(result[0], { seed: 0n, enabled: false });
  });
});

describe("AddNoise", () => {
  const add = async (sigmas: number[], noise: object, latent_image: object) => {
    const model = { sampling: modelSampling("sd15") };
    return (await invokeNode("AddNoise", { model, noise, sigmas, latent_image })).result[0] as Latent;
  };
  const shape = [1, 4, 2, 2];

  it("adds noise of the distance between the first and the last sigma", async () => {
    const latent = { samples: Tensor.full(shape, 0.5) };
    const noise = randn(shape, { seed: 5 });
    for (const [sigmas, strength] of [
      [[3, 2, 1], 2],
      [[3], 3],
      [[1, 3], 2],
    ] as const) {
      const { samples } = await add([...sigmas], { seed: 5n, enabled: true }, latent);
      const expected = Tensor.from(
        noise.data.map((value) => 0.5 + (value * strength) / 0.18215),
        shape,
      );
      assertClose(samples, expected, (x) => 1e-6 * Math.max(1, Math.abs(x)), `sigmas ${sigmas.join()}`);
    }
  });

  it("returns the latent itself without sigmas", async () => {
    const latent = { samples: Tensor.full(shape, 0.5) };
    assert.equal(await add([], { seed: 5n, enabled: true }, latent), latent);
  });

  it("makes 0 of what is not finite", async () => {
    const samples = Tensor.from([Number.NaN, Infinity, -Infinity, 1], [1, 4, 1, 1]);
    const { samples: added } = await add([1], { seed: 5n, enabled: false }, { samples });
    assertSameBits(added, Tensor.from([0, 0, 0, 1], [1, 4, 1, 1]));
  });
});

describe("sampling in a node", () => {
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

  const folder = temporaryFolder();
  for (const [key, inputs] of Object.entries(inputsOf)) {
    const messagesOf = async (model: Model) => {
      const messages: string[] = [];
      await invokeNode(key, inputs(model), { log: (message) => messages.push(message) });
      return messages;
    };

    it(`warns of a latent of ${key} with numbers that are not finite, and counts them`, async () => {
      const damage = "values in the latent are NaN or infinite; its pictures will be black or damaged.";
      assert.deepEqual(await messagesOf(broken(0)), [`${2 * ITEM} of ${2 * ITEM} ${damage}`]);
      assert.deepEqual(await messagesOf(broken(ITEM)), [`${ITEM} of ${2 * ITEM} ${damage}`]);
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
    const expected = "64 of 64 values in the latent are NaN or infinite; its pictures will be black or damaged.";
    assert.deepEqual(messages, [`Node 6 (SamplerCustom): ${expected}`]);
  });
});
