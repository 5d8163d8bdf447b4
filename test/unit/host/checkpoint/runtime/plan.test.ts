import assert from "node:assert/strict";
import { CPU_TARGET } from "#src/host/checkpoint/onnx/target.js";
import { fits, plannedOn, preferredPlan, sessionBytes } from "#src/host/checkpoint/runtime/plan.js";

const unet = { parameters: 859_520_964, fileBytes: 859_520_964 * 2 };
const CPU = { isGpu: false, hasFloat16: true };
const cpu = (calls: number, wish?: "stream" | "fold") => ({ calls, device: CPU, wish });
const gpu = (hasFloat16: boolean, wish?: "keep" | "fold") => ({ calls: 1, device: { isGpu: true, hasFloat16 }, wish });

describe("preferredPlan", () => {
  it("follows a wish before any rule", () => {
    assert.equal(preferredPlan(unet, cpu(20, "stream")), "stream");
    assert.equal(preferredPlan(unet, cpu(1, "fold")), "fold");
  });

  it("folds a network whose graph is a file, whatever the wish", () => {
    assert.equal(preferredPlan({ ...unet, isFixed: true }, cpu(1, "stream")), "fold");
  });

  it("folds a large network from two runs on", () => {
    assert.equal(preferredPlan(unet, cpu(1)), "stream");
    assert.equal(preferredPlan(unet, cpu(2)), "fold");
  });

  it("folds a small network for one run", () => {
    assert.equal(preferredPlan({ parameters: 123_060_480, fileBytes: 123_060_480 * 2 }, cpu(1)), "fold");
  });

  it("folds 8-bit floats for one run, and not 16-bit floats", () => {
    assert.equal(preferredPlan({ ...unet, fileBytes: unet.parameters * 1.1 }, cpu(1)), "fold");
    assert.equal(preferredPlan({ ...unet, fileBytes: unet.parameters * 2 }, cpu(1)), "stream");
    const language = { parameters: 3.9e9, fileBytes: 3.9e9 };
    assert.equal(preferredPlan(language, cpu(1)), "stream");
    assert.equal(preferredPlan(language, cpu(2)), "fold");
  });

  it("keeps F16 weights on a GPU that computes with them", () => {
    const float16 = { ...unet, halfParameters: unet.parameters };
    assert.equal(preferredPlan(float16, gpu(true)), "keep");
    assert.equal(preferredPlan(float16, gpu(false)), "fold");
    assert.equal(preferredPlan({ ...unet, halfParameters: unet.parameters / 4 }, gpu(true)), "fold");
    assert.equal(preferredPlan(unet, gpu(true)), "fold");
    assert.equal(preferredPlan(unet, gpu(true, "keep")), "keep");
    assert.equal(preferredPlan(float16, gpu(true, "fold")), "fold");
  });
});

describe("sessionBytes and fits", () => {
  it("count packed matrices in the form that products take, but where they are expanded", () => {
    const quantised = { ...unet, packedParameters: unet.parameters, packedBytes: 5e8 };
    assert.equal(sessionBytes(quantised, "fold"), 5e8);
    assert.equal(sessionBytes({ ...quantised, packedParameters: 0 }, "fold"), sessionBytes(unet, "fold") + 5e8);
    assert.equal(
      sessionBytes(plannedOn({ target: { ...CPU_TARGET, groups: undefined } }, quantised), "fold"),
      sessionBytes(unet, "fold"),
    );
    assert.equal(plannedOn({ target: CPU_TARGET }, quantised), quantised);
    assert.equal(sessionBytes(quantised, "stream"), sessionBytes(unet, "stream") + 5e8);
    assert.ok(fits(quantised, 5e8) && !fits(quantised, 4e8));
  });

  it("count four bytes a parameter and some more for folding, and no file for streaming", () => {
    const folded = sessionBytes(unet, "fold");
    assert.ok(folded > 3.6e9 && folded < 4.2e9, String(folded));
    assert.ok(sessionBytes(unet, "stream") < 1e8);
    const largest = { ...unet, convertedParameters: 1e7 };
    assert.equal(sessionBytes(largest, "stream"), sessionBytes(unet, "stream") + 4e7);
    const kept = sessionBytes({ ...unet, halfParameters: unet.parameters }, "keep");
    assert.equal(kept, 2 * unet.parameters);
    assert.equal(sessionBytes(unet, "keep"), folded);
    assert.equal(fits(unet, folded), true);
    assert.equal(fits(unet, folded - 1), false);
  });
});
