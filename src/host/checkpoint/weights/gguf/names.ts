/** Names of a block's layers in llama.cpp, and what stands for them. */
type Names = Readonly<Record<string, string>>;

interface Layout {
  /** Beginning of the names of blocks, before their number. */
  readonly block: readonly [from: string, to: string];
  readonly layers: Names;
  readonly others: Names;
}

const T5: Layout = {
  block: ["enc.blk.", "encoder.block."],
  layers: {
    attn_q: "layer.0.SelfAttention.q",
    attn_k: "layer.0.SelfAttention.k",
    attn_v: "layer.0.SelfAttention.v",
    attn_o: "layer.0.SelfAttention.o",
    attn_rel_b: "layer.0.SelfAttention.relative_attention_bias",
    attn_norm: "layer.0.layer_norm",
    ffn_gate: "layer.1.DenseReluDense.wi_0",
    ffn_up: "layer.1.DenseReluDense.wi_1",
    ffn_down: "layer.1.DenseReluDense.wo",
    ffn_norm: "layer.1.layer_norm",
  },
  others: { "enc.output_norm": "encoder.final_layer_norm", token_embd: "shared" },
};

const QWEN: Layout = {
  block: ["blk.", "model.layers."],
  layers: {
    attn_q: "self_attn.q_proj",
    attn_k: "self_attn.k_proj",
    attn_v: "self_attn.v_proj",
    attn_output: "self_attn.o_proj",
    attn_q_norm: "self_attn.q_norm",
    attn_k_norm: "self_attn.k_norm",
    attn_norm: "input_layernorm",
    ffn_norm: "post_attention_layernorm",
    ffn_gate: "mlp.gate_proj",
    ffn_up: "mlp.up_proj",
    ffn_down: "mlp.down_proj",
  },
  others: { token_embd: "model.embed_tokens", output_norm: "model.norm", output: "lm_head" },
};

/**
 * Gives the names that llama.cpp has for the weights of a language model those of the original files; other names stay. The
 * names tell which model it is, since files lack `general.architecture` or invent their own.
 */
export function originalNames(names: readonly string[]): (name: string) => string {
  const layout = [T5, QWEN].find(({ block: [from] }) => names.some((name) => name.startsWith(`${from}0.attn_q.`)));
  return layout === undefined ? (name) => name : (name) => original(name, layout);
}

function original(name: string, { block: [from, to], layers, others }: Layout): string {
  const end = name.lastIndexOf(".");
  const [module, ending] = [name.slice(0, end), name.slice(end)];
  if (Object.hasOwn(others, module)) return others[module] + ending;
  const [, number, layer] = name.startsWith(from) ? (/^(\d{1,4})\.(\w+)$/.exec(module.slice(from.length)) ?? []) : [];
  return layer !== undefined && Object.hasOwn(layers, layer) ? `${to}${number}.${layers[layer]}${ending}` : name;
}
