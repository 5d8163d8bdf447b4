/** Layers of diffusers by those of Flux: in a block of two streams, in one of the joint stream, and around the blocks. */
export const IN_DOUBLE = {
  "img_attn.proj": "attn.to_out.0",
  "txt_attn.proj": "attn.to_add_out",
  "img_mlp.0": "ff.net.0.proj",
  "img_mlp.2": "ff.net.2",
  "txt_mlp.0": "ff_context.net.0.proj",
  "txt_mlp.2": "ff_context.net.2",
  "img_mod.lin": "norm1.linear",
  "txt_mod.lin": "norm1_context.linear",
  "img_attn.norm.query_norm": "attn.norm_q",
  "img_attn.norm.key_norm": "attn.norm_k",
  "txt_attn.norm.query_norm": "attn.norm_added_q",
  "txt_attn.norm.key_norm": "attn.norm_added_k",
} as const;
export const IN_SINGLE = {
  linear2: "proj_out",
  "modulation.lin": "norm.linear",
  "norm.query_norm": "attn.norm_q",
  "norm.key_norm": "attn.norm_k",
} as const;
export const AROUND = {
  img_in: "x_embedder",
  txt_in: "context_embedder",
  "final_layer.linear": "proj_out",
  "time_in.in_layer": "time_text_embed.timestep_embedder.linear_1",
  "time_in.out_layer": "time_text_embed.timestep_embedder.linear_2",
  "vector_in.in_layer": "time_text_embed.text_embedder.linear_1",
  "vector_in.out_layer": "time_text_embed.text_embedder.linear_2",
  "guidance_in.in_layer": "time_text_embed.guidance_embedder.linear_1",
  "guidance_in.out_layer": "time_text_embed.guidance_embedder.linear_2",
} as const;
/** Layers of diffusers that follow each other in one of Flux. */
export const THIRDS = {
  "img_attn.qkv": ["attn.to_q", "attn.to_k", "attn.to_v"],
  "txt_attn.qkv": ["attn.add_q_proj", "attn.add_k_proj", "attn.add_v_proj"],
} as const;
export const OF_LINEAR1 = ["attn.to_q", "attn.to_k", "attn.to_v", "proj_mlp"] as const;
/** Layer whose scale stands before its shift in diffusers. */
export const SWAPPED = { module: "final_layer.adaLN_modulation.1", name: "norm_out.linear" } as const;
