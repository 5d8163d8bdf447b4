import { quotedName, type WeightMap } from "../weights/stored.js";

/** Families that run here, in the sentences of refusals. */
export const OWN_FAMILIES = "SD 1, SD 2, SDXL, SD 3, Z-Image, Qwen-Image, Flux.1, Flux.2 or Chroma";

/** Name of a kind of model, and parts of keys that occur together only in its files. */
type Mark = readonly [name: string, ...parts: string[]];

/**
 * Other kinds of models, the more specific first: a kind is known by its published layer names. `.` in front is the
 * beginning of a key or of a part of it.
 */
const MARKS: readonly Mark[] = [
  // attached to a model
  ["a LoRA", ".lora_up.weight"],
  ["a LoRA", ".lora_A."],
  ["a LoRA", ".lora.up.weight"],
  ["a LoRA", "_lora.up.weight"],
  ["a LoRA", ".lora_linear_layer.up.weight"],
  ["a LoRA (LoHa)", ".hada_w1_a"],
  ["a LoRA (LoKr)", ".lokr_w1"],
  ["a LoRA (LoKr)", ".lokr_w1_a"],
  ["an adapter of OFT", ".oft_blocks"],
  ["an adapter of OFT", ".oft_diag"],
  ["an adapter of OFT", ".oft_R"],
  ["an adapter of GLoRA", ".a1.weight", ".a2.weight", ".b1.weight", ".b2.weight"],
  ["an adapter of IA3", ".ia3_l"],
  ["an adapter of IA3", ".on_input"],
  ["an adapter of whole weights (set_weight)", ".set_weight"],
  ["a Control-LoRA", ".lora_controlnet"],
  ["a ControlNet-LLLite", ".lllite_unet_"],
  ["a style model of Flux (Redux)", ".redux_down.", ".redux_up."],
  ["a style model of T2I-Adapter", ".style_embedding"],
  ["an IPAdapter", ".ip_adapter."],
  ["an IPAdapter", ".image_proj."],
  ["a T2I-Adapter", ".adapter.body."],
  ["a T2I-Adapter", ".body.0.block1."],
  ["motion weights of AnimateDiff", ".motion_modules."],
  ["a GLIGEN model", ".position_net."],
  ["a ControlNet", ".zero_convs.0.0.weight"],
  ["a ControlNet", ".input_hint_block."],
  ["a ControlNet", ".controlnet_cond_embedding."],
  ["a control net of Qwen-Image (DiffSynth), which is a model patch", ".controlnet_blocks.", ".y_rms."],
  ["a ControlNet of Qwen-Image (InstantX)", ".controlnet_blocks.", ".txt_norm."],
  ["a ControlNet of Flux or Stable Diffusion 3", ".controlnet_blocks."],
  // relatives of Stable Diffusion
  ["a Stable Video Diffusion model", ".time_stack."],
  ["a Stable Video Diffusion model", ".time_mixer."],
  ["a Stable Video Diffusion model", ".temporal_transformer_blocks."],
  ["a Kolors model", ".encoder_hid_proj."],
  ["an unCLIP model", ".noise_augmentor."],
  ["an unCLIP model", ".embedder.model.visual."],
  ["a Stable Zero123 model", ".cc_projection."],
  ["a Stable Cascade model", ".clip_txt_mapper."],
  ["a Stable Cascade model", ".clip_txt_pooled_mapper."],
  ["a Stable Cascade model", ".effnet_mapper."],
  ["a Stable Cascade model", ".channelwise."],
  ["a latent consistency model with a guidance embedding", ".cond_proj.weight"],
  ["weights in 4 bits of Nunchaku (SVDQuant)", ".qweight", ".wscales"],
  // transformers
  ["a Chroma (diffusers) model", ".distilled_guidance_layer.", ".single_transformer_blocks."],
  ["a Chroma model", ".distilled_guidance_layer."],
  ["a Hunyuan Video model", ".txt_in.individual_token_refiner."],
  ["a Flux.2 model", ".double_stream_modulation_img."],
  ["a Flux model", ".double_blocks.", ".single_blocks."],
  ["a Flux model", ".double_blocks."],
  ["a Flux (diffusers) model", ".single_transformer_blocks."],
  ["a HiDream model", ".double_stream_blocks."],
  ["an AuraFlow model", ".double_layers."],
  ["an AuraFlow model", ".cond_seq_linear."],
  ["a Stable Diffusion 3 model", ".joint_blocks."],
  ["a Stable Diffusion 3 (diffusers) model", ".joint_transformer_blocks."],
  ["a Qwen-Image model", ".txt_norm.", ".img_mod."],
  ["an LTX Video model", ".patchify_proj."],
  ["an LTX Video model", ".adaln_single.", ".proj_in.", ".caption_projection.", ".scale_shift_table"],
  ["a Hunyuan-DiT model", ".mlp_t5."],
  ["a Z-Image or Lumina transformer", ".cap_embedder.", ".noise_refiner."],
  ["a Lumina model", ".cap_embedder."],
  ["a Mochi model", ".t5_yproj."],
  ["a Cosmos model", ".adaln_modulation_self_attn."],
  ["a Cosmos model", ".blocks.block0."],
  ["a Cosmos model", ".affline_norm.", ".extra_pos_embedder."],
  ["a Wan model", ".cross_attn.", ".text_embedding.", ".time_projection."],
  ["a PixArt model", ".t_block."],
  ["a PixArt model", ".adaln_single."],
  ["a Stable Diffusion 3 (diffusers) model", ".attn.add_q_proj."],
  // other parts
  ["a text encoder (T5)", ".encoder.block.0.layer.0.SelfAttention."],
  ["a text encoder (T5)", ".enc.blocks.0."],
  // encoder of Flux.2 dev
  ["a Mistral model", ".tekken_model"],
  ["a language model", ".model.layers.0.self_attn."],
  ["a vision tower of llama.cpp (mmproj)", ".v.blk."],
  ["an encoder of pictures (CLIP Vision)", ".vision_model.encoder."],
  ["an encoder of pictures (CLIP Vision)", ".visual.transformer."],
  ["a Stable Diffusion checkpoint", ".diffusion_model.input_blocks.", ".diffusion_model.output_blocks."],
  ["a Stable Diffusion UNet", ".input_blocks.0.0.weight", ".output_blocks.0."],
  ["a diffusers UNet", ".down_blocks.0.resnets.", ".conv_norm_out.", ".time_embedding."],
  ["a part of a Stable Diffusion UNet", ".input_blocks."],
  ["a text encoder", ".token_embedding.weight"],
  ["a tiny autoencoder", ".taesd_decoder."],
  ["a tiny autoencoder", ".taesd_encoder."],
  ["a tiny autoencoder", ".3.conv.0.weight"],
  ["a VAE", ".decoder.conv_in."],
  ["a VAE", ".encoder.conv_in."],
  ["an upscale model", ".RDB1.conv1."],
  ["an upscale model", ".rdb1.conv1."],
  ["an upscale model", ".relative_position_bias_table"],
  ["only averages of training (EMA)", ".model_ema.diffusion_modelinput"],
  ["a textual inversion", ".emb_params"],
  ["a textual inversion", ".clip_g"],
];

/** Kinds that are loaded under keys as published: a file of the right kind has others, and a message names one. */
const OWN_KINDS = /VAE|Stable Diffusion (?:checkpoint|UNet)|diffusers|a ControlNet$|text encoder$|tiny|upscale/;

/** Families that run here: recognition finds their files, unless these are in another place or lack layers. */
const OWN_MODELS = /^a (?:Chroma|Flux|Flux \(diffusers\)|Flux\.2|Stable Diffusion 3|Qwen-Image) model$/;

/** Whether a name of foreignKind is that of a family that runs here. */
export const isOwnModel = (kind: string): boolean => OWN_MODELS.test(kind);

/** Begins the words for a file of no known kind. */
export const UNKNOWN_KEYS = "unknown keys";

/** A file in words: the kind of model that its keys belong to, or one of its keys. */
export function kindInWords(weights: WeightMap): string {
  const [key] = weights.keys();
  if (key === undefined) return "a file without tensors";
  return foreignKind(weights) ?? `${UNKNOWN_KEYS} such as ${quotedName(key)}`;
}

/** Name of the kind of model that a file's keys belong to; undefined for an unknown one. @internal */
export function foreignKind(weights: WeightMap): string | undefined {
  const marks = MARKS.map(([name, ...parts]) => ({ name, missing: new Set(parts), key: "" }));
  for (const key of weights.keys()) {
    const dotted = `.${key}`;
    for (const mark of marks)
      for (const part of mark.missing) {
        if (!dotted.includes(part)) continue;
        mark.missing.delete(part);
        mark.key = key;
      }
  }
  const found = marks.find(({ missing }) => missing.size === 0);
  if (found === undefined || !OWN_KINDS.test(found.name)) return found?.name;
  return `${found.name} with the key ${quotedName(found.key)}`;
}
