import assert from "node:assert/strict";
import { infotextOf } from "#src/render/receipt/settings.js";
import { node } from "../../../helpers/graph/graph-nodes.js";

const SIZE = { width: 512, height: 768 };

const linesOf = (prompt: Record<string, unknown>, models = {}) => {
  const text = infotextOf(prompt, "9", SIZE, models);
  return text?.replace(/, Version: latentkit [\w.-]+$/, "").split("\n");
};

const encoders = {
  "6": node("CLIPTextEncode", { text: " a fox \nin snow ", clip: ["4", 1] }),
  "7": node("CLIPTextEncode", { text: "", clip: ["4", 1] }),
  "8": node("VAEDecode", { samples: ["3", 0], vae: ["4", 2] }),
  "9": node("SaveImage", { images: ["8", 0], filename_prefix: "a" }),
};
const ksampler = (inputs: object) =>
  node("KSampler", {
    seed: 5,
    steps: 20,
    cfg: 7,
    sampler_name: "dpmpp_2m",
    scheduler: "karras",
    denoise: 0.6,
    model: ["4", 0],
    positive: ["6", 0],
    negative: ["7", 0],
    latent_image: ["5", 0],
    ...inputs,
  });

describe("render/receipt/parameters", () => {
  it("tells a KSampler's settings, the model's file and its hash as Civitai knows it", () => {
    const prompt = {
      ...encoders,
      "3": ksampler({ model: ["10", 0] }),
      "4": node("CheckpointLoaderSimple", { ckpt_name: "sd\\v1, pruned.safetensors" }),
      "10": node("LoraLoader", { lora_name: "x.safetensors", model: ["4", 0] }),
    };
    const models = { "checkpoints/sd\\v1, pruned.safetensors": `sha256:${"0123456789abcdef".repeat(4)}` };
    assert.deepEqual(linesOf(prompt, models), [
      "a fox ",
      "in snow",
      "Steps: 20, Sampler: DPM++ 2M, Schedule type: Karras, CFG scale: 7, Seed: 5, Size: 512x768, " +
        'Model hash: 0123456789, Model: "v1, pruned", Denoising strength: 0.6',
    ]);
  });

  it("follows links of values, of combined prompts and of a ControlNet's two sides", () => {
    const prompt = {
      ...encoders,
      "3": ksampler({ seed: ["20", 0], positive: ["11", 0], negative: ["11", 1], denoise: 1, sampler_name: "own" }),
      "7": node("CLIPTextEncode", { text: ["21", 0], clip: ["4", 1] }),
      "11": node("ControlNetApplyAdvanced", { positive: ["12", 0], negative: ["7", 0], strength: 1 }),
      "12": node("ConditioningCombine", { conditioning_1: ["6", 0], conditioning_2: ["13", 0] }),
      "13": node("CLIPTextEncodeSDXL", { text_g: "a lake", text_l: "a lake", width: 8, clip: ["4", 1] }),
      "20": node("PrimitiveInt", { value: 77 }),
      "21": node("PrimitiveString", { value: "blur" }),
    };
    assert.deepEqual(linesOf(prompt), [
      "a fox ",
      "in snow, a lake",
      "Negative prompt: blur",
      "Steps: 20, Sampler: own, Schedule type: Karras, CFG scale: 7, Seed: 77, Size: 512x768",
    ]);
  });

  it("follows a pipe to the node that put the side into it, and texts that nodes pass on", () => {
    const prompt = {
      ...encoders,
      "3": ksampler({ positive: ["11", 2], negative: ["11", 3] }),
      "11": node("ext pipeOut", { pipe: ["12", 0] }),
      "12": node("ext pipeEdit", { pipe: ["13", 0], latent: ["5", 0] }),
      "13": node("ext pipeLoader", { positive: ["14", 0], negative: "blurry", ckpt_name: "a.safetensors" }),
      "14": node("ext saveTextLazy", { text: ["15", 0], file_name: "prompt" }),
      "15": node("ext showAnythingLazy", { anything: "a lake" }),
    };
    const sides = () => linesOf(prompt)?.slice(0, 2);
    assert.deepEqual(sides(), ["a lake", "Negative prompt: blurry"]);
    prompt["12"] = node("ext pipeEdit", { pipe: ["13", 0], negative: ["6", 0] });
    assert.deepEqual(linesOf(prompt)?.slice(0, 3), ["a lake", "Negative prompt: a fox ", "in snow"]);
    prompt["14"] = node("ext saveTextLazy", { text: ["14", 0] });
    prompt["13"] = node("ext pipeEdit", { pipe: ["12", 0] });
    assert.ok(linesOf(prompt), "circles end");
  });

  it("gathers the settings of custom sampling, and no text of a zeroed side", () => {
    const prompt = {
      ...encoders,
      "3": node("SamplerCustomAdvanced", {
        noise: ["30", 0],
        guider: ["31", 0],
        sampler: ["32", 0],
        sigmas: ["33", 0],
        latent_image: ["5", 0],
      }),
      "4": node("UNETLoader", { unet_name: "flux1-dev.safetensors" }),
      "30": node("RandomNoise", { noise_seed: 9 }),
      "31": node("CFGGuider", { model: ["4", 0], positive: ["6", 0], negative: ["34", 0], cfg: 3.5 }),
      "32": node("KSamplerSelect", { sampler_name: "euler" }),
      "33": node("BasicScheduler", { scheduler: "simple", steps: 8, denoise: 1, model: ["4", 0] }),
      "34": node("ConditioningZeroOut", { conditioning: ["6", 0] }),
    };
    assert.deepEqual(linesOf(prompt), [
      "a fox ",
      "in snow",
      "Steps: 8, Sampler: Euler, Schedule type: Simple, CFG scale: 3.5, Seed: 9, Size: 512x768, Model: flux1-dev",
    ]);
  });

  it("tells nothing if no sampler is above the node, and ends if links form a circle", () => {
    assert.equal(
      linesOf({ "9": node("SaveImage", { images: ["8", 0] }), "8": node("LoadImage", { image: "a" }) }),
      undefined,
    );
    assert.equal(linesOf({}), undefined);
    const circle = {
      ...encoders,
      "3": ksampler({ positive: ["10", 0] }),
      "10": node("ConditioningCombine", { conditioning_1: ["11", 0], conditioning_2: ["10", 0] }),
      "11": node("ConditioningCombine", { conditioning_1: ["10", 0], conditioning_2: ["6", 0] }),
    };
    assert.deepEqual(linesOf(circle)!.slice(0, 2), ["a fox ", "in snow"]);
  });
});
