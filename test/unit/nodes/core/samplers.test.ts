import assert from "node:assert/strict";
import { invokeNode, modelSampling, registry, SAMPLERS, sigmas, validateGraph } from "latentkit";
import { samplerName } from "#src/nodes/core/samplers.js";
import { describeNode } from "#src/nodes/describe.js";
import { convertInput } from "#src/nodes/values.js";
import { refuses } from "../../../helpers/errors.js";
import { analyticEntry } from "../../../helpers/sampling/analytic-model.js";
import { golden } from "../../../helpers/tensor/golden.js";

describe("samplerName", () => {
  const convert = (value: unknown) => convertInput(samplerName(), value, { input: "sampler_name" });

  it("accepts every sampler, and the names of ComfyUI's first graphs", async () => {
    for (const name of SAMPLERS) assert.equal(convert(name), name);
    assert.equal(convert("sample_euler"), "euler");
    assert.equal(convert("sample_dpmpp_2m"), "dpmpp_2m");
    assert.ok(sigmas({ sampler: convert("sample_dpm_2") as "dpm_2", scheduler: "normal", steps: 2 }));
  });

  it("refuses any other name, such as those of other programs", async () => {
    for (const name of ["sample_uni_pc", "sample_", "k_euler", "DPM++ 2M Karras", "__proto__", 5]) {
      await refuses(() => convert(name), "input.not-in-list", /sampler_name/);
    }
  });

  it("makes old graphs valid, and describes the new names alone", () => {
    const inputs = {
      sampler_name: "sample_heun",
      scheduler: "karras",
      steps: 5,
      start_at_step: 0,
      end_at_step: 5,
      source: "CPU",
      seed: 1,
    };
    const graph = { "1": { class_type: "ext latentNoisy", inputs } };
    assert.ok(validateGraph(graph, { targets: ["1"] }).ok);
    const described = describeNode(registry.get("ext latentNoisy")!).input.required.sampler_name;
    assert.deepEqual(described, [SAMPLERS, {}]);
  });
});

describe("KSamplerSelect", () => {
  it("is any sampler by its name, without options", async () => {
    for (const sampler of SAMPLERS) {
      const { result } = await invokeNode("KSamplerSelect", { sampler_name: sampler });
      assert.deepEqual(result[0], { sampler, options: {} });
    }
  });
});

/** Nodes whose inputs are the options of a solver, and inputs that are none. */
const OPTIONS: [key: string, sampler: string, options: object, others?: object][] = [
  ["SamplerEulerAncestral", "euler_ancestral", { eta: 0.5, s_noise: 1.25 }],
  ["SamplerEulerAncestralCFGPP", "euler_ancestral_cfg_pp", { eta: 0.5, s_noise: 1.25 }],
  ["SamplerDPMPP_2S_Ancestral", "dpmpp_2s_ancestral", { eta: 0.5, s_noise: 1.25 }],
  ["SamplerDPMPP_SDE", "dpmpp_sde", { eta: 0.5, s_noise: 1.25, r: 0.3 }, { noise_device: "gpu" }],
  ["SamplerDPMPP_3M_SDE", "dpmpp_3m_sde", { eta: 0.5, s_noise: 1.25 }, { noise_device: "cpu" }],
  ["SamplerDPMPP_2M_SDE", "dpmpp_2m_sde", { solver_type: "heun", eta: 0.5, s_noise: 1.25 }, { noise_device: "gpu" }],
  ["SamplerLMS", "lms", { order: 3 }],
  ["SamplerSEEDS2", "seeds_2", { solver_type: "phi_2", eta: 0.5, s_noise: 1.25, r: 0.75 }],
];

for (const [key, sampler, options, others] of OPTIONS) {
  describe(key, () => {
    it("takes its options under the names of the solver", async () => {
      const { result } = await invokeNode(key, { ...options, ...others });
      assert.deepEqual(result[0], { sampler, options });
    });
  });
}

describe("SamplerDPMAdaptative", () => {
  it("has the defaults of dpm_adaptive", async () => {
    const { inputs } = registry.get("SamplerDPMAdaptative")!;
    const defaults = Object.fromEntries(Object.entries(inputs).map(([name, { options }]) => [name, options.default]));
    const { meta } = golden<unknown, { sampler_signatures: Record<string, Record<string, unknown>> }>("samplers");
    const { noise_sampler, return_info, ...reference } = meta.sampler_signatures.dpm_adaptive!;
    assert.deepEqual(defaults, reference);
    const [choice] = (await invokeNode("SamplerDPMAdaptative", { ...defaults, rtol: 0.1 })).result;
    assert.deepEqual(choice, { sampler: "dpm_adaptive", options: { ...reference, rtol: 0.1 } });
  });
});

describe("SamplerER_SDE", () => {
  const run = async (solver_type: string, eta: number) => {
    const inputs = { solver_type, max_stage: 2, eta, s_noise: 1.25 };
    return (await invokeNode("SamplerER_SDE", inputs)).result[0] as {
      sampler: string;
      options: { s_noise: number; max_stage: number; noise_scaler: ((sigma: number) => number) | null };
    };
  };

  it("keeps the solver's own noise for ER-SDE, whatever eta is", async () => {
    const { sampler, options } = await run("ER-SDE", 0);
    assert.deepEqual([sampler, options], ["er_sde", { s_noise: 1.25, max_stage: 2, noise_scaler: null }]);
  });

  it("scales noise by sigma to the power of eta and 1 for Reverse-time SDE", async () => {
    const { options } = await run("Reverse-time SDE", 2);
    assert.equal(options.noise_scaler!(3), 27);
    assert.equal(options.s_noise, 1.25);
  });

  it("adds no noise for ODE, and for Reverse-time SDE with eta 0", async () => {
    for (const { options } of [await run("ODE", 5), await run("Reverse-time SDE", 0)]) {
      assert.equal(options.noise_scaler!(3), 3);
      assert.equal(options.s_noise, 0);
    }
  });
});

describe("SamplerSASolver", () => {
  it("has noise between the sigmas of its percents, both included", async () => {
    const model = { sampling: modelSampling("sd3") };
    const orders = { predictor_order: 2, corrector_order: 3, use_pece: true, simple_order_2: false };
    const inputs = { model, eta: 0.7, sde_start_percent: 0.25, sde_end_percent: 0.5, s_noise: 1.25, ...orders };
    const [{ sampler, options }] = (await invokeNode("SamplerSASolver", inputs)).result as [
      { sampler: string; options: { tau_func: (sigma: number) => number } },
    ];
    const { tau_func, ...rest } = options;
    assert.equal(sampler, "sa_solver");
    assert.deepEqual(rest, { s_noise: 1.25, ...orders });
    // of shift 3, percents 0.25 and 0.5 are at 0.9 and 0.75
    assert.deepEqual([0.91, 0.9, 0.8, 0.75, 0.74].map(tau_func), [0, 0.7, 0.7, 0.7, 0]);
  });
});

describe("SamplerEulerCFGpp", () => {
  it("chooses euler_cfg_pp, and refuses the version that is not described", async () => {
    const [choice] = (await invokeNode("SamplerEulerCFGpp", { version: "regular" })).result;
    assert.deepEqual(choice, { sampler: "euler_cfg_pp", options: {} });
    await assert.rejects(invokeNode("SamplerEulerCFGpp", { version: "alternative" }), {
      code: "input.invalid",
      message:
        'SamplerEulerCFGpp, input "version": expected regular (latentkit has no other version), received "alternative".',
    });
    const graph = { 1: { class_type: "SamplerEulerCFGpp", inputs: { version: "alternative" } } };
    const all = { ...graph, 2: { class_type: "PreviewAny", inputs: { source: ["1", 0] } } };
    const validation = await validateGraph(all);
    assert.ok(!validation.ok);
    assert.match(JSON.stringify(validation.nodeErrors), /latentkit has no other version/);
  });
});

const model = { sampling: modelSampling("sd15") };
const [a, b, c] = [[analyticEntry(1)], [analyticEntry(2)], [analyticEntry(3)]];

async function assertSocketTakes(guider: unknown): Promise<void> {
  const sampler = { sampler: "euler", options: {} };
  const noise = { seed: 0n, enabled: false };
  const latent_image = { samples: analyticEntry([1, 2], {}, 4)[0].reshape([1, 2, 2, 2]) };
  const inputs = { guider, sampler, noise, sigmas: [], latent_image };
  const sampled = await invokeNode("SamplerCustomAdvanced", inputs);
  assert.equal((sampled.result[0] as typeof latent_image).samples, latent_image.samples);
}

describe("BasicGuider", () => {
  it("is its inputs as a guider, which a socket takes", async () => {
    const { result } = await invokeNode("BasicGuider", { model, conditioning: a });
    assert.deepEqual(result[0], { kind: "basic", model, positive: a });
    await assertSocketTakes(result[0]);
  });
});

describe("CFGGuider", () => {
  it("is its inputs as a guider, which a socket takes", async () => {
    const { result } = await invokeNode("CFGGuider", { model, positive: a, negative: b, cfg: 3 });
    assert.deepEqual(result[0], { kind: "cfg", model, positive: a, negative: b, cfg: 3 });
    await assertSocketTakes(result[0]);
  });
});

describe("DualCFGGuider", () => {
  it("is its inputs as a guider, which a socket takes", async () => {
    const { result } = await invokeNode("DualCFGGuider", {
      model,
      cond1: a,
      cond2: b,
      negative: c,
      cfg_conds: 3,
      cfg_cond2_negative: 2,
      style: "nested",
    });
    assert.deepEqual(result[0], {
      kind: "dual-cfg",
      model,
      cond1: a,
      cond2: b,
      negative: c,
      style: "nested",
      cfgConds: 3,
      cfgCond2Negative: 2,
    });
    await assertSocketTakes(result[0]);
  });
});

describe("PerpNegGuider", () => {
  it("is its inputs as a guider, which a socket takes", async () => {
    const { result } = await invokeNode("PerpNegGuider", {
      model,
      positive: a,
      negative: b,
      empty_conditioning: c,
      cfg: 3,
      neg_scale: 0.5,
    });
    assert.deepEqual(result[0], { kind: "perp-neg", model, positive: a, negative: b, empty: c, cfg: 3, negScale: 0.5 });
    await assertSocketTakes(result[0]);
  });
});
