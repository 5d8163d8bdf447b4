import assert from "node:assert/strict";
import { readKey } from "#src/host/checkpoint/weights/lora/keys.js";

/** Layer and role by key. */
const KEYS: Record<string, [module: string, role: string]> = {
  "lora_unet_conv_in.lora_up.weight": ["lora_unet_conv_in", "up"],
  "lora_unet_conv_in.lora_down.weight": ["lora_unet_conv_in", "down"],
  "lora_unet_conv_in.lora_mid.weight": ["lora_unet_conv_in", "mid"],
  "lora_unet_conv_in.alpha": ["lora_unet_conv_in", "alpha"],
  "unet.a.attn1.processor.to_q_lora.up.weight": ["unet.a.attn1.processor.to_q", "up"],
  "unet.a.attn1.processor.to_out_lora.down.weight": ["unet.a.attn1.processor.to_out", "down"],
  "text_encoder.a.q_proj.lora_linear_layer.up.weight": ["text_encoder.a.q_proj", "up"],
  "text_encoder.a.q_proj.lora_linear_layer.down.weight": ["text_encoder.a.q_proj", "down"],
  "unet.a.to_q.lora_A.weight": ["unet.a.to_q", "down"],
  "unet.a.to_q.lora_B.weight": ["unet.a.to_q", "up"],
  "unet.a.to_q.lora_A": ["unet.a.to_q", "down"],
  "unet.a.to_q.lora_B": ["unet.a.to_q", "up"],
  "unet.a.to_q.lora.up.weight": ["unet.a.to_q", "up"],
  "unet.a.to_q.lora.down.weight": ["unet.a.to_q", "down"],
  "unet.a.to_q.lora_magnitude_vector": ["unet.a.to_q", "dora_scale"],
  "x.dora_scale": ["x", "dora_scale"],
  "x.hada_w1_a": ["x", "hada_w1_a"],
  "x.hada_t2": ["x", "hada_t2"],
  "x.lokr_w1": ["x", "lokr_w1"],
  "x.lokr_w2_b": ["x", "lokr_w2_b"],
  "x.lokr_t2": ["x", "lokr_t2"],
  "x.diff": ["x", "diff"],
  "x.diff_b": ["x", "diff_b"],
  "x.w_norm": ["x", "w_norm"],
  "x.b_norm": ["x", "b_norm"],
};

describe("keys of LoRA files", () => {
  it("end with what the tensor is", () => {
    for (const [key, [module, role]] of Object.entries(KEYS)) assert.deepEqual(readKey(key), { module, role }, key);
  });

  it("may name PEFT's adapter", () => {
    const module = "base_model.model.a.to_q";
    assert.deepEqual(readKey(`${module}.lora_A.default.weight`), { module, role: "down", adapter: "default" });
    assert.deepEqual(readKey(`${module}.lora_B.adapter_0.weight`), { module, role: "up", adapter: "adapter_0" });
    const norms = readKey(`${module}.lora_magnitude_vector.cat.weight`);
    assert.deepEqual(norms, { module, role: "dora_scale", adapter: "cat" });
  });

  it("of no known form are none", () => {
    for (const key of [
      "",
      "alpha",
      ".alpha",
      "x.weight",
      "x.oft_blocks",
      "x.lora_up",
      "x.alpha.",
      "x.lokr_t1",
      "__proto__",
    ])
      assert.equal(readKey(key), undefined, key);
  });
});
