import assert from "node:assert/strict";
import { originalNames } from "#src/host/checkpoint/weights/gguf/open.js";

describe("originalNames", () => {
  const T5 = ["token_embd.weight", "enc.blk.0.attn_q.weight"];
  const QWEN = ["token_embd.weight", "blk.0.attn_q.weight"];
  const cases: readonly (readonly [names: readonly string[], name: string, original: string])[] = [
    [T5, "token_embd.weight", "shared.weight"],
    [T5, "enc.blk.23.attn_q.weight", "encoder.block.23.layer.0.SelfAttention.q.weight"],
    [T5, "enc.blk.0.attn_rel_b.weight", "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"],
    [T5, "enc.blk.0.ffn_gate.weight", "encoder.block.0.layer.1.DenseReluDense.wi_0.weight"],
    [T5, "enc.blk.0.ffn_norm.weight", "encoder.block.0.layer.1.layer_norm.weight"],
    [T5, "enc.output_norm.weight", "encoder.final_layer_norm.weight"],
    [T5, "enc.blk.0.unknown.weight", "enc.blk.0.unknown.weight"],
    [T5, "enc.blk.0.constructor.weight", "enc.blk.0.constructor.weight"],
    [QWEN, "token_embd.weight", "model.embed_tokens.weight"],
    [QWEN, "blk.35.attn_output.weight", "model.layers.35.self_attn.o_proj.weight"],
    [QWEN, "blk.1.attn_k_norm.weight", "model.layers.1.self_attn.k_norm.weight"],
    [QWEN, "blk.1.ffn_down.weight", "model.layers.1.mlp.down_proj.weight"],
    [QWEN, "output_norm.weight", "model.norm.weight"],
    [QWEN, "output.weight", "lm_head.weight"],
    [QWEN, "blk.00001.ffn_down.weight", "blk.00001.ffn_down.weight"],
    [["double_blocks.0.img_attn.qkv.weight"], "token_embd.weight", "token_embd.weight"],
  ];
  for (const [names, name, original] of cases)
    it(`gives ${name} beside ${names.at(-1)} the name ${original}`, () =>
      assert.equal(originalNames(names)(name), original));
});
