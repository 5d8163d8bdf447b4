import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createCache, executeGraph, render, type Tensor, validateGraph } from "latentkit";
import { createCheckpointHost } from "latentkit/models";
import { root, temporaryFolder } from "../../../helpers/folders.js";
import { goldenBytes } from "../../../helpers/golden-file.js";
import { tinyHost, tinyModels } from "../../../helpers/models/tiny-host.js";
import { f32, writeWeights } from "../../../helpers/models/weight-file.js";

describe("warnings of a checkpoint host", () => {
  const folder = temporaryFolder();
  const host = tinyHost();
  const CHECKPOINT = { class_type: "CheckpointLoaderSimple", inputs: { ckpt_name: "tiny-sd1.safetensors" } };
  const graphOf = (text: unknown) => ({
    "1": CHECKPOINT,
    "2": { class_type: "CLIPTextEncode", inputs: { clip: ["1", 1], text } },
    "3": { class_type: "PrimitiveString", inputs: { value: "embedding:nothere a fox" } },
  });
  const rendered = async (graph: object, cache = createCache(), own = host()) => {
    const { status, warnings, error } = await render(graph, { host: own, targets: ["2"], cache, output: "memory" });
    assert.equal(status, "success", error?.message);
    return warnings;
  };
  const lost = `Node 2 (CLIPTextEncode): Embedding "nothere" is ignored: there is no such file in the embeddings folders.`;

  it("name the node whose prompt loses an embedding, once, in validate too", async () => {
    const graph = graphOf("embedding:nothere a fox, embedding:nothere");
    assert.deepEqual(await rendered(graph), [lost]);
    const { warnings } = validateGraph(graph, { host: host(), targets: ["2"] });
    assert.deepEqual(
      warnings.map(({ nodeId, input, message }) => [nodeId, input, message]),
      [["2", "text", lost]],
    );
  });

  it("come for a prompt that a link brings, in a run that takes its encoding from the cache too", async () => {
    const cache = createCache();
    const graph = graphOf(["3", 0]);
    assert.deepEqual(await rendered(graph, cache), [lost]);
    assert.deepEqual(await rendered(graph, cache), [lost]);
  });

  it("say that an embedding has another width", async () => {
    mkdirSync(join(folder(), "embeddings"), { recursive: true });
    writeWeights(join(folder(), "embeddings/wide.safetensors"), { emb_params: f32([1, 3]) });
    const own = createCheckpointHost({ models: [tinyModels(), folder()] });
    const [warning, ...others] = await rendered(graphOf("embedding:wide"), undefined, own).finally(() => own.close());
    assert.match(warning ?? "", /^Node 2 \(CLIPTextEncode\): Embedding "wide\.safetensors" is ignored: its shape is/);
    assert.deepEqual(others, []);
    const found = (graph: object, targets = ["2"]) =>
      validateGraph(graph, { host: own, targets }).warnings.map(({ message }) => message);
    assert.deepEqual(found(graphOf("embedding:wide")), [warning]);
    // behind a node that takes another layer
    const layer = { class_type: "CLIPSetLastLayer", inputs: { clip: ["1", 1], stop_at_clip_layer: -2 } };
    const far = { ...graphOf("embedding:wide"), "4": layer };
    far["2"].inputs.clip = ["4", 0];
    assert.deepEqual(found(far), [warning]);
    const loader = {
      class_type: "ext pipeLoader",
      inputs: { ckpt_name: "tiny-sd1.safetensors", positive: "embedding:wide", negative: "" },
    };
    const encode = { class_type: "VAEDecode", inputs: { samples: ["1", 1], vae: ["1", 2] } };
    const save = { class_type: "PreviewImage", inputs: { images: ["2", 0] } };
    const piped = found({ 1: loader, 2: encode, 3: save }, ["3"]).filter((message) => message.includes("wide"));
    assert.deepEqual(piped, [warning?.replace("Node 2 (CLIPTextEncode)", "Node 1 (ext pipeLoader)")]);
  });

  it("say that language models take none, and these read the prompt without it", async () => {
    for (const [kind, name, set] of [
      ["text_encoders", "qwen_3_tiny", "models-z-qwen"],
      ["text_encoders", "qwen_2.5_vl_tiny", "models-z-qwen"],
      ["text_encoders", "t5xxl_fp16", "models-flux"],
    ] as const) {
      const file = join(folder(), kind, `${name}.safetensors`);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, goldenBytes(join(root, "test/golden", set, kind, `${name}.safetensors`))!);
    }
    mkdirSync(join(folder(), "embeddings"), { recursive: true });
    writeWeights(join(folder(), "embeddings/easy.safetensors"), { emb_params: f32([1, 64]) });
    writeFileSync(join(folder(), "embeddings/old.pt"), "\x80\x02", "latin1");
    const own = createCheckpointHost({ models: folder() });
    for (const [clip_name, type] of [
      ["qwen_3_tiny.safetensors", "lumina2"],
      ["qwen_3_tiny.safetensors", "flux2"],
      ["qwen_2.5_vl_tiny.safetensors", "qwen_image"],
      ["t5xxl_fp16.safetensors", "chroma"],
    ] as const) {
      const encoded = async (text: string) => {
        const graph = {
          "1": { class_type: "CLIPLoader", inputs: { clip_name, type } },
          "2": { class_type: "CLIPTextEncode", inputs: { clip: ["1", 0], text } },
        };
        const warnings: string[] = [];
        let cond: Tensor | undefined;
        for await (const event of executeGraph(graph, { host: own, targets: ["2"] })) {
          if (event.type === "node-done" && event.nodeId === "2") [[cond]] = event.outputs[0] as [[Tensor]];
          if (event.type === "warning") warnings.push(event.message);
        }
        return { cond, warnings };
      };
      const { cond } = await encoded("a fox");
      const marked = await encoded("embedding:easy a fox embedding:old embedding:nothere");
      assert.deepEqual(marked.cond?.data, cond?.data, type);
      const start = "Node 2 (CLIPTextEncode): Embedding";
      const none = "only CLIP's text encoders take embeddings";
      assert.deepEqual(marked.warnings.sort(), [
        `${start} "easy.safetensors" is ignored: ${none}.`,
        lost,
        `${start} "old.pt" is ignored: ${none}.`,
      ]);
    }
    await own.close();
  });

  it("are errors before a run for embeddings that cannot be read", async () => {
    mkdirSync(join(folder(), "embeddings"), { recursive: true });
    writeFileSync(join(folder(), "embeddings/old.pt"), "\x80\x02", "latin1");
    writeFileSync(join(folder(), "embeddings/page.safetensors"), "<!DOCTYPE html><html>");
    const own = createCheckpointHost({ models: [tinyModels(), folder()] });
    const start = 'Node 2 (CLIPTextEncode), input "text": ';
    for (const [word, code, reason] of [
      ["old", "model.unsupported", 'Embedding "old.pt": expected a .safetensors file, received a pickle'],
      ["page", "model.invalid", 'Embedding "page.safetensors": expected a .safetensors file, received a web page'],
      ["../../x", "path.outside", "Models: expected the name of a file inside the folders of the embeddings"],
    ] as const) {
      const graph = graphOf(`a fox, embedding:${word} and embedding:${word}`);
      const { ok, nodeErrors } = validateGraph(graph, { host: own, targets: ["2"] });
      const errors = nodeErrors["2"]?.errors ?? [];
      assert.deepEqual([ok, errors.map((error) => error.code)], [false, [code]]);
      assert.ok(errors[0]!.sentence.startsWith(start + reason), errors[0]!.sentence);
      await assert.rejects(render(graph, { host: own, targets: ["2"], output: "memory" }), {
        code,
        message: errors[0]!.sentence,
      });
    }
    await own.close();
  });
});
