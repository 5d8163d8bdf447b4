import assert from "node:assert/strict";
import { createPreviewHost, type Host, render, validateGraph } from "latentkit";
import { refuses } from "../../../helpers/errors.js";
import { node } from "../../../helpers/graph/graph-nodes.js";

const host = createPreviewHost();
const CHECKPOINT = node("CheckpointLoaderSimple", { ckpt_name: "preview-sd15.safetensors" });
const FREE_U = { b1: 1.1, b2: 1.2, s1: 0.9, s2: 0.2 };
const sentencesOf = (graph: object, own: Host = host) =>
  Object.values(validateGraph(graph, { host: own, targets: ["4"] }).nodeErrors).flatMap(({ errors }) =>
    errors.map(({ sentence }) => sentence),
  );

describe("hostRefusals", () => {
  const patched = { "1": CHECKPOINT, "4": node("FreeU", { model: ["1", 0], ...FREE_U }) };

  it("refuse a node whose work the host's models cannot do, as render does", async () => {
    const sentence = 'The graph cannot run here: FreeU (node 4, host "preview" has no models that nodes can modify).';
    assert.deepEqual(sentencesOf(patched), [sentence]);
    await refuses(render(patched, { host, targets: ["4"], output: "memory" }), "host.missing", /^The graph cannot run/);
    const merge = (ratio: unknown) => ({
      "1": CHECKPOINT,
      "4": node("ModelMergeSimple", { model1: ["1", 0], model2: ["1", 0], ratio }),
    });
    assert.match(sentencesOf(merge(0.5)).join(), /ModelMergeSimple \(node 4, host "preview" has no models/);
    assert.deepEqual(sentencesOf(merge(1)), []);
    const texts = { "1": CHECKPOINT, "4": node("CLIPTextEncodeHiDream", encoder) };
    assert.match(sentencesOf(texts).join(), /CLIPTextEncodeHiDream \(node 4, .*no text encoders beyond CLIP's/);
  });
  const encoder = { clip: ["1", 1], clip_l: "", clip_g: "", t5xxl: "", llama: "" };

  it("leave hosts alone that say nothing of their abilities, copies of others too", () => {
    assert.deepEqual(sentencesOf(patched, { ...host }), []);
  });

  it("refuse files of kinds that the host has none of, unless they have no effect", () => {
    const lora = (strength: number) => ({
      "1": CHECKPOINT,
      "4": node("LoraLoaderModelOnly", { model: ["1", 0], lora_name: "ink.safetensors", strength_model: strength }),
    });
    assert.deepEqual(sentencesOf(lora(1)), [
      'The graph cannot run here: LoraLoaderModelOnly (node 4, host "preview" has no LoRAs).',
    ]);
    assert.deepEqual(sentencesOf(lora(0)), []);
  });

  it("warn of a node behind a lazy input, which may never run", async () => {
    const graph = {
      ...patched,
      "5": node("ext if", { any: true, if: ["1", 0], else: ["4", 0] }),
    };
    const { ok, warnings } = validateGraph(graph, { host, targets: ["5"] });
    assert.equal(ok, true);
    assert.match(warnings.map(({ message }) => message).join(), /cannot run here: FreeU \(node 4/);
    assert.equal((await render(graph, { host, targets: ["5"], output: "memory" })).status, "success");
  });

  it("names the family of a GGUF file for a loader that is not known", () => {
    const graph = { "3": node("UnetLoaderGGUFAdvanced", { unet_name: "flux1-dev-Q4_K_S.gguf" }) };
    const verdict = validateGraph(graph, { host });
    const start =
      "The graph cannot run here: Flux (node 3, flux1-dev-Q4_K_S.gguf: GGUF). Node 3: expected a known class";
    assert.ok(!verdict.ok && verdict.error.sentence.startsWith(start), JSON.stringify(verdict));
  });

  describe("of a graph whose files are missing", () => {
    const hidream = (unet_name: string) => ({
      "1": node("UNETLoader", { unet_name, weight_dtype: "default" }),
      "2": node("DualCLIPLoader", {
        clip_name1: "t5xxl_fp16.safetensors",
        clip_name2: "clip_l.safetensors",
        type: "hidream",
      }),
      "3": node("CLIPTextEncode", { clip: ["2", 0], text: "" }),
      "4": node("BasicGuider", { model: ["1", 0], conditioning: ["3", 0] }),
    });
    const withFiles = (files: Partial<Record<string, readonly string[]>>): Host => ({
      ...host,
      files: (kind) => files[kind],
    });

    it("name its family once, by a file's name or the type of a text encoder", () => {
      const own = withFiles({ diffusion_models: ["page.safetensors"], text_encoders: [] });
      const [first, ...rest] = sentencesOf(hidream("hidream_i1.safetensors"), own);
      assert.equal(first, "The graph cannot run here: HiDream (node 1, hidream_i1.safetensors).");
      assert.equal(rest.length, 3);
      assert.doesNotMatch(rest.join(), /cannot run here|Did you mean/);
      assert.match(rest.join(), /expected a file in text_encoders \(none there fits this input\), received "clip_l/);
      const byType = sentencesOf(hidream("model.safetensors"), own).filter((one) => one.includes("cannot run here"));
      assert.deepEqual(byType, ['The graph cannot run here: HiDream (node 2, type "hidream").']);
      const known: Host = {
        ...own,
        fileOf: (_, name) => (name === "model.safetensors" ? name : undefined),
        refusal: (_, name) => (name === "model.safetensors" ? { family: "HiDream" } : undefined),
      };
      const byHeader = sentencesOf(hidream("model.safetensors"), known).filter((one) =>
        one.includes("cannot run here"),
      );
      assert.deepEqual(byHeader, ["The graph cannot run here: HiDream (node 1, model.safetensors)."]);
    });

    it("say once of a node what the host lacks", () => {
      const sentences = sentencesOf(hidream("hidream_i1.safetensors"));
      assert.equal(sentences.length, 3);
      assert.equal(new Set(sentences).size, 3);
    });

    it("leave files alone that the host has, and names of families that it runs", () => {
      const own = withFiles({
        diffusion_models: ["hidream_i1.safetensors"],
        text_encoders: ["t5xxl_fp16.safetensors", "clip_l.safetensors"],
      });
      assert.deepEqual(sentencesOf(hidream("hidream_i1.safetensors"), own), []);
      const sentences = sentencesOf({
        "4": node("CheckpointLoaderSimple", { ckpt_name: "sdxl-hidream-like.safetensors" }),
      });
      assert.doesNotMatch(sentences.join(), /cannot run here/);
    });
  });

  it("lets graphs of other families run that the host can run", () => {
    assert.deepEqual(sentencesOf({ "4": node("EmptySD3LatentImage", { width: 64, height: 64, batch_size: 1 }) }), []);
  });
});
