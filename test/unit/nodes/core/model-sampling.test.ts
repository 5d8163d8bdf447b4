import assert from "node:assert/strict";
import { createPreviewHost, invokeNode, type Model, modelSampling } from "latentkit";
import { refuses } from "../../../helpers/errors.js";
import { patchable } from "../../../helpers/graph/file-host.js";
import { patchesOf } from "../../../helpers/graph/patch-tests.js";

const load = async (family: string) =>
  (await createPreviewHost().loadCheckpoint(`preview-${family}.safetensors`)).model;

describe("ModelSamplingDiscrete", () => {
  const resample = async (model: unknown, sampling: string, zsnr = false) =>
    (await invokeNode("ModelSamplingDiscrete", { model, sampling, zsnr })).result[0];

  it("changes the table of a model that is read like that already", async () => {
    const model = await load("sd15");
    const changed = await resample(model, "eps", true);
    assert.deepEqual(changed.sampling.sigmas, modelSampling("sd15", { zsnr: true }).sigmas);
    assert.ok(changed.sampling.sigmaMax > 4000 && model.sampling.sigmaMax < 15);
    assert.equal(changed.sampling.latentFormat, model.sampling.latentFormat);
    const wide = { sampling: modelSampling("hunyuan-dit") };
    assert.deepEqual((await resample(wide, "v_prediction")).sampling.sigmas, wide.sampling.sigmas);
  });

  it("lets the host read the network otherwise, along the table of that reading", async () => {
    for (const [sampling, prediction, count] of [
      ["v_prediction", "v", 1000],
      ["x0", "eps", 1000],
      ["lcm", "eps", 50],
    ] as const) {
      const changed = await resample(await patchable("sdxl"), sampling);
      assert.deepEqual(patchesOf(changed), [{ node: "ModelSamplingDiscrete", inputs: { sampling, zsnr: false } }]);
      assert.deepEqual([changed.sampling.prediction, changed.sampling.sigmas.length], [prediction, count], sampling);
      assert.equal(changed.sampling.latentFormat, modelSampling("sdxl").latentFormat);
    }
  });

  it("refuses another reading if the host cannot change it", async () => {
    const model = await load("sd15");
    const message =
      /^ModelSamplingDiscrete, host "preview": model sd15 predicts eps; the host cannot read that as v\.$/;
    await refuses(resample(model, "v_prediction"), "host.missing", message);
    for (const sampling of ["lcm", "x0"]) await refuses(resample(model, sampling), "host.missing", / as (lcm|x0)\.$/);
    await refuses(resample(await load("flux"), "eps"), "host.missing", /predicts flow/);
  });
});

describe("ModelSamplingContinuousEDM", () => {
  const levels = { sigma_max: 90, sigma_min: 0.01 };
  const resample = async (model: unknown, sampling: string, others: object = levels) =>
    (await invokeNode("ModelSamplingContinuousEDM", { model, sampling, ...others })).result[0];

  it("changes the levels of a model of its kind", async () => {
    const model = await load("svd");
    const { sampling } = await resample(model, "v_prediction");
    assert.deepEqual(sampling.sigmas, modelSampling("svd", { sigmaMax: 90, sigmaMin: 0.01 }).sigmas);
    assert.ok(Math.abs(sampling.sigmaMax - 90) < 1e-4 && Math.abs(sampling.sigmaMin - 0.01) < 1e-8);
  });

  it("lets the host read any other model so", async () => {
    for (const [kind, prediction] of [
      ["edm", "edm"],
      ["eps", "eps"],
      ["v_prediction", "edm-v"],
    ] as const) {
      const changed = await resample(await patchable(), kind);
      assert.deepEqual(patchesOf(changed), [
        { node: "ModelSamplingContinuousEDM", inputs: { sampling: kind, ...levels } },
      ]);
      assert.equal(changed.sampling.prediction, prediction);
      assert.equal(changed.sampling.latentFormat.name, "SD15");
    }
    assert.equal((await resample(await patchable(), "edm_playground_v2.5")).sampling.latentFormat.scaleFactor, 0.5);
    const flow = await resample(await patchable("sd3"), "cosmos_rflow");
    assert.equal(patchesOf(flow).length, 1);
    assert.equal(flow.sampling.name, "sd3");
  });

  it("refuses models that its host cannot change, and levels of no table", async () => {
    const model = await load("sd15");
    await refuses(
      resample(model, "edm"),
      "host.missing",
      /model sd15 predicts eps; the host cannot read that as edm\.$/,
    );
    await refuses(
      resample(model, "edm", { sigma_max: 1, sigma_min: 2 }),
      "value.out-of-range",
      /sigmaMin below sigmaMax/,
    );
    await refuses(resample(model, "edm", { sigma_max: 1, sigma_min: 0 }), "value.out-of-range", /sigmaMin/);
  });
});

describe("ModelSamplingContinuousV", () => {
  const inputs = { sampling: "v_prediction", sigma_max: 500, sigma_min: 0.03 };

  it("has levels of angles between signal and noise, for the host to read", async () => {
    const { result } = await invokeNode("ModelSamplingContinuousV", { model: await patchable(), ...inputs });
    const { sampling } = result[0];
    assert.deepEqual(patchesOf(result[0]), [{ node: "ModelSamplingContinuousV", inputs }]);
    assert.equal(sampling.prediction, "v");
    assert.ok(Math.abs(sampling.sigmaMax - 500) < 1e-3 && Math.abs(sampling.sigmaMin - 0.03) < 1e-7);
    assert.equal(sampling.timestep(1), 0.5);
    assert.equal(sampling.sigma(0.5), 1);
    for (const sigma of [0.05, 3, 400])
      assert.ok(Math.abs(sampling.sigma(sampling.timestep(sigma)) / sigma - 1) < 1e-4);
    assert.deepEqual(sampling.sigmas, modelSampling("svd", { sigmaMax: 500, sigmaMin: 0.03 }).sigmas);
  });

  it("refuses a model that its host cannot change", async () => {
    const model = await load("sd21-v");
    await refuses(invokeNode("ModelSamplingContinuousV", { model, ...inputs }), "host.missing", /v in continuous time/);
  });
});

for (const [key, family, other, shift] of [
  ["ModelSamplingSD3", "sd3", "flux", 5],
  ["ModelSamplingAuraFlow", "auraflow", "sd3", 2.5],
] as const) {
  describe(key, () => {
    const resample = async (model: unknown, shift: number) =>
      (await invokeNode(key, { model: model as Model, shift })).result[0];

    it("changes the levels of a model that gets the same times, without its host", async () => {
      const model = await patchable(family);
      const changed = await resample(model, shift);
      assert.deepEqual(changed.sampling.sigmas, modelSampling(family, { shift }).sigmas);
      assert.notDeepEqual(changed.sampling.sigmas, model.sampling.sigmas);
      assert.equal(changed.sampling.name, family);
      assert.deepEqual(patchesOf(changed), []);
    });

    it("lets the host give its network other times", async () => {
      const changed = await resample(await patchable(other), shift);
      assert.deepEqual(patchesOf(changed), [{ node: key, inputs: { shift } }]);
      assert.equal(changed.sampling.latentFormat, modelSampling(other).latentFormat);
      assert.equal(changed.sampling.name, other);
    });

    it("refuses models of another kind, and a shift of 0", async () => {
      const model = await load("sd15");
      await refuses(
        resample(model, 2),
        "host.missing",
        /model sd15 predicts eps; the host cannot read that as flow\.$/,
      );
      await refuses(resample(model, 0), "value.out-of-range", /shift: expected a finite number above 0/);
    });
  });
}

describe("ModelSamplingFlux", () => {
  const shifts = { max_shift: 1.15, base_shift: 0.5 };
  const resample = async (model: unknown, width: number, height: number) =>
    (await invokeNode("ModelSamplingFlux", { model, ...shifts, width, height })).result[0];

  it("shifts by the number of tokens, between 256 and 4096 and beyond", async () => {
    const model = await load("flux");
    for (const [width, height, shift] of [
      [256, 256, 0.5],
      [1024, 1024, 1.15],
      [512, 1024, 0.5 + (0.65 * (2048 - 256)) / 3840],
      [2048, 1024, 0.5 + (0.65 * (8192 - 256)) / 3840],
    ] as const) {
      const { sampling } = await resample(model, width, height);
      const { sigmas } = modelSampling("flux", { shift });
      for (const at of [0, 2500, 5000, 9999]) assert.ok(Math.abs(sampling.sigmas[at]! / sigmas[at]! - 1) < 3e-7);
    }
  });

  it("has a finite schedule at the largest picture and shifts", async () => {
    const model = await load("flux");
    for (const [max_shift, base_shift] of [
      [1.15, 0.5],
      [100, 0],
      [0, 100],
    ]) {
      const inputs = { model, max_shift, base_shift, width: 16384, height: 16384 };
      const { sampling } = (await invokeNode("ModelSamplingFlux", inputs)).result[0];
      assert.ok(sampling.sigmas.every((sigma: number) => sigma >= 0 && sigma <= 1));
      assert.equal(sampling.sigmaMax, 1);
    }
  });

  it("lets the host give a network of other times its own", async () => {
    const changed = await resample(await patchable("sd3"), 512, 512);
    assert.deepEqual(patchesOf(changed), [
      { node: "ModelSamplingFlux", inputs: { ...shifts, width: 512, height: 512 } },
    ]);
    assert.deepEqual(patchesOf(await resample(await patchable("flux-schnell"), 512, 512)), []);
  });

  it("refuses models that are not a flow", async () => {
    const model = await load("sdxl");
    await refuses(resample(model, 512, 512), "host.missing", /model sdxl predicts eps/);
  });
});

describe("ModelSamplingStableCascade", () => {
  const resample = async (model: unknown, shift: number) =>
    (await invokeNode("ModelSamplingStableCascade", { model, shift })).result[0];

  it("changes the levels of a model of Stable Cascade", async () => {
    const { sampling } = await resample({ sampling: modelSampling("cascade-b") }, 3);
    assert.deepEqual(sampling.sigmas, modelSampling("cascade-b", { shift: 3 }).sigmas);
    assert.equal(sampling.name, "cascade-b");
    assert.equal(sampling.latentFormat.name, "SC_B");
  });

  it("lets the host give another network its times", async () => {
    const changed = await resample(await patchable(), 3);
    assert.deepEqual(patchesOf(changed), [{ node: "ModelSamplingStableCascade", inputs: { shift: 3 } }]);
    assert.deepEqual(changed.sampling.sigmas, modelSampling("cascade-c", { shift: 3 }).sigmas);
  });

  it("refuses flow models", async () => {
    await refuses(resample({ sampling: modelSampling("sd3") }, 2), "host.missing", /predicts flow/);
  });
});
