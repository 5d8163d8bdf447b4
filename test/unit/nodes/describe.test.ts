import assert from "node:assert/strict";
import { createPreviewHost, registry, SAMPLERS, SCHEDULERS } from "latentkit";
import { printJson } from "#src/io/json/lossless.js";
import { describeNode } from "#src/nodes/describe.js";

const describing = (key: string) => describeNode(registry.get(key)!, { host: createPreviewHost() });

describe("nodes/describe", () => {
  it("describes a node as ComfyUI does", () => {
    assert.deepEqual(describing("ext imageToMask"), {
      input: { required: { image: ["IMAGE", {}], channel: [["red", "green", "blue"], {}] } },
      input_order: { required: ["image", "channel"] },
      is_input_list: false,
      output: ["MASK"],
      output_is_list: [false],
      output_name: ["MASK"],
      name: "ext imageToMask",
      display_name: "ImageToMask (🚫Deprecated)",
      description: "One colour channel of an image as a mask [B, H, W], in 256 levels.",
      python_module: "latentkit",
      category: "ext/🚫 Deprecated",
      output_node: false,
      deprecated: true,
    });
  });

  it("separates required, optional and hidden inputs, in order", () => {
    const { input, input_order } = describing("ext latentNoisy");
    assert.deepEqual(input_order, {
      required: ["sampler_name", "scheduler", "steps", "start_at_step", "end_at_step", "source", "seed"],
      optional: ["pipe", "optional_model", "optional_latent"],
    });
    assert.deepEqual(input.required.sampler_name, [SAMPLERS, {}]);
    assert.deepEqual(input.required.scheduler![0], SCHEDULERS);
    assert.deepEqual(input.required.steps, ["INT", { default: 10000, min: 0, max: 10000 }]);
    assert.match(printJson(input.required.seed), /"max": 18446744073709551615/);
    assert.deepEqual(describing("ext latentCompositeMaskedWithCond").input.hidden, {
      prompt: "PROMPT",
      extra_pnginfo: "EXTRA_PNGINFO",
      my_unique_id: "UNIQUE_ID",
    });
  });

  it("marks list outputs and list inputs", () => {
    assert.deepEqual(describing("ext latentCompositeMaskedWithCond").output_is_list, [false, false, true]);
    assert.equal(describing("ext showAnythingLazy").is_input_list, true);
    assert.deepEqual(describing("ext if").output_name, ["?"]);
    assert.deepEqual(describing("ext if").input.required.if, ["*", { lazy: true }]);
  });

  it("fills choices from the host", () => {
    assert.deepEqual(
      describing("CheckpointLoaderSimple").input.required.ckpt_name![0],
      createPreviewHost().checkpoints(),
    );
  });

  it("prints every node as JSON", () => {
    for (const key of registry.keys()) {
      const printed = JSON.parse(printJson(describing(key)));
      assert.equal(printed.name, key);
      assert.equal(Object.hasOwn(printed, "deprecated"), registry.get(key)!.deprecated);
    }
  });

  it("has the eleven nodes as the requirement names them", () => {
    const eleven = registry.keys().filter((key) => key.startsWith("ext ") && registry.get(key)!.deprecated);
    assert.deepEqual(eleven.sort(), [
      "ext if",
      "ext imageToMask",
      "ext injectNoiseToLatent",
      "ext latentCompositeMaskedWithCond",
      "ext latentNoisy",
      "ext poseEditor",
      "ext remoteImageApi",
      "ext saveImageLazy",
      "ext saveTextLazy",
      "ext showAnythingLazy",
      "ext showSpentTime",
    ]);
    for (const key of eleven) {
      const { category, displayName } = registry.get(key)!;
      assert.equal(category, "ext/🚫 Deprecated");
      assert.match(displayName, /^[A-Z]\w+ \(🚫Deprecated\)$/);
    }
  });

  it("has output nodes only where the requirement says so", () => {
    const outputs = registry.keys().filter((key) => key.startsWith("ext ") && registry.get(key)!.outputNode);
    assert.deepEqual(outputs, ["ext showSpentTime"]);
  });
});
