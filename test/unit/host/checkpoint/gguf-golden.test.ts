import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { executeGraph, type Tensor } from "latentkit";
import { createCheckpointHost } from "latentkit/models";
import { root, temporaryFolder } from "../../../helpers/folders.js";
import { goldenText } from "../../../helpers/golden-file.js";
import { unpackFolders } from "../../../helpers/models/golden-graphs.js";
import { ownCacheFolder } from "../../../helpers/models/models-folder.js";
import { writeQuantised } from "../../../helpers/models/quantised-file.js";

type Graph = Record<string, { class_type: string; inputs: Record<string, unknown> }>;

const GOLDEN = join(root, "test/golden/models-z-qwen");

/** Names of llama.cpp for those of Qwen3 and Qwen2.5-VL. */
const LLAMA: readonly (readonly [RegExp, string])[] = [
  [/^model\.layers\.(\d+)\.self_attn\.([qkv])_proj\./, "blk.$1.attn_$2."],
  [/^model\.layers\.(\d+)\.self_attn\.o_proj\./, "blk.$1.attn_output."],
  [/^model\.layers\.(\d+)\.self_attn\.([qk])_norm\./, "blk.$1.attn_$2_norm."],
  [/^model\.layers\.(\d+)\.input_layernorm\./, "blk.$1.attn_norm."],
  [/^model\.layers\.(\d+)\.post_attention_layernorm\./, "blk.$1.ffn_norm."],
  [/^model\.layers\.(\d+)\.mlp\.(\w+)_proj\./, "blk.$1.ffn_$2."],
  [/^model\.embed_tokens\./, "token_embd."],
  [/^model\.norm\./, "output_norm."],
];

describe("GGUF files from end to end", () => {
  const folder = temporaryFolder();
  ownCacheFolder(folder);

  /** Names of llama.cpp, which has vision towers in files of their own. */
  const renamed = (key: string): string | undefined =>
    key.startsWith("visual.")
      ? undefined
      : LLAMA.reduce((name, [pattern, replacement]) => name.replace(pattern, replacement), key);

  /** Latent and conditioning of a golden graph with other files. */
  async function outputs(models: string, id: string, names: Readonly<Record<string, string>>) {
    const { cases } = JSON.parse(goldenText(join(GOLDEN, "e2e.json"))) as {
      cases: { id: string; graph: Graph; latent_node: string; cond?: Record<string, unknown> }[];
    };
    const { graph, latent_node: latent, cond } = cases.find((one) => one.id === id)!;
    const text = Object.entries(names).reduce((all, [from, to]) => all.replaceAll(from, to), JSON.stringify(graph));
    const [encoded] = Object.keys(cond ?? { "4": "" }) as [string];
    const host = createCheckpointHost({ models });
    const found = new Map<string, unknown>();
    try {
      for await (const event of executeGraph(JSON.parse(text) as Graph, { host, targets: [latent, encoded] })) {
        if (event.type === "node-done") found.set(event.nodeId, event.outputs[0]);
        if (event.type === "node-error") assert.fail(event.error);
      }
    } finally {
      await host.close();
    }
    const { samples } = found.get(latent) as { samples: Tensor };
    const [[context]] = found.get(encoded) as [[Tensor]];
    return { samples, context };
  }

  function assertNear(actual: Tensor, expected: Tensor, tolerance: number): void {
    assert.deepEqual(actual.shape, expected.shape);
    const most = expected.data.reduce((max, value) => Math.max(max, Math.abs(value)), 1);
    for (const [i, value] of expected.data.entries())
      assert.ok(Math.abs(actual.data[i]! - value) <= tolerance * most, `${i}: ${actual.data[i]} is not ${value}`);
  }

  for (const [type, lora] of [
    ["Q8_0", "z/turbo_euler_simple_4"],
    ["Q4_0", "z/turbo_euler_simple_4"],
    ["Q4_0", "z/lora_diffusers"],
    ["Q8_0", "q/euler_simple_cfg"],
    ["Q4_0", "q/lora_lightning"],
  ] as const)
    it(`transformers and text encoders in ${type} give what their expanded weights give: ${lora}`, async () => {
      const models = folder();
      unpackFolders(GOLDEN, ["diffusion_models", "text_encoders", "vae", "loras"], models);
      for (const [kind, name, architecture, rename] of [
        ["diffusion_models", "z_image_tiny", "lumina2", undefined],
        ["diffusion_models", "qwen_image_tiny", "qwen_image", undefined],
        ["text_encoders", "qwen_3_tiny", "qwen3", renamed],
        ["text_encoders", "qwen_2.5_vl_tiny", "qwen2vl", renamed],
      ] as const) {
        const path = join(models, kind, name);
        const written = { gguf: `${path}-quantised.gguf`, expanded: `${path}-expanded.safetensors` };
        writeQuantised(`${path}.safetensors`, written, { type: () => type, architecture, rename });
      }
      const named = (ending: string) => ({
        "z_image_tiny.safetensors": `z_image_tiny-${ending}`,
        "qwen_3_tiny.safetensors": `qwen_3_tiny-${ending}`,
        "qwen_image_tiny.safetensors": `qwen_image_tiny-${ending}`,
        "qwen_2.5_vl_tiny.safetensors": `qwen_2.5_vl_tiny-${ending}`,
      });
      const expected = await outputs(models, lora, named("expanded.safetensors"));
      const actual = await outputs(models, lora, named("quantised.gguf"));
      assertNear(actual.context, expected.context, 1e-5);
      assertNear(actual.samples, expected.samples, 3e-5);
      assert.deepEqual(readdirSync(join(models, "cache", "unpacked")), []);
    });
});
