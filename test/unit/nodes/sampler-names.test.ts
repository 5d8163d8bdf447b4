import assert from "node:assert/strict";
import { registry, SAMPLERS, sigmas, validateGraph } from "latentkit";
import { describeNode } from "#src/nodes/describe.js";
import { samplerName } from "#src/nodes/sampler-names.js";
import { convertInput } from "#src/nodes/values.js";
import { refuses } from "../../helpers/errors.js";

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
