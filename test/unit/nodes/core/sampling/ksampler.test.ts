import assert from "node:assert/strict";
import {
  createPreviewHost,
  createRegistry,
  defineNode,
  executeGraph,
  invokeNode,
  modelSampling,
  registry,
  Tensor,
} from "latentkit";
import { eventsUntil } from "../../../../helpers/errors.js";
import { analyticEntry, analyticModel } from "../../../../helpers/sampling/analytic-model.js";

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

describe("KSampler", () => {
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
      message: "KSampler: Model sd15 cannot denoise: its host offers only the noise schedule.",
    });
  });

  it("returns the input itself where denoise is 0, also of a model that cannot denoise", async () => {
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
