import assert from "node:assert/strict";
import { recogniseCheckpoint } from "#src/host/checkpoint/families/recognise.js";
import { foreignKind } from "#src/host/checkpoint/recognition/refusal.js";
import { refuses } from "../../../../helpers/errors.js";
import { fullSizeShapes, headerOf, type Shapes } from "../../../../helpers/models/full-size.js";

/** Some keys of published files of each kind. */
const KINDS: readonly (readonly [kind: string, ...keys: string[]])[] = [
  [
    "Flux",
    "model.diffusion_model.double_blocks.0.img_attn.qkv.weight",
    "model.diffusion_model.single_blocks.0.linear1.weight",
  ],
  ["Flux", "double_blocks.18.img_mlp.0.weight", "guidance_in.in_layer.weight"],
  ["Flux.2", "double_stream_modulation_img.lin.weight", "double_blocks.0.img_attn.qkv.weight"],
  ["Flux (diffusers)", "single_transformer_blocks.0.attn.to_q.weight", "transformer_blocks.0.attn.add_q_proj.weight"],
  ["Chroma", "distilled_guidance_layer.in_proj.weight", "double_blocks.0.img_attn.qkv.weight"],
  [
    "Stable Diffusion 3",
    "model.diffusion_model.joint_blocks.0.x_block.attn.qkv.weight",
    "text_encoders.clip_l.transformer.text_model.embeddings.token_embedding.weight",
  ],
  ["Chroma (diffusers)", "distilled_guidance_layer.in_proj.weight", "single_transformer_blocks.0.attn.to_q.weight"],
  ["Stable Diffusion 3 (diffusers)", "transformer_blocks.0.attn.add_q_proj.weight", "pos_embed.proj.weight"],
  ["Stable Cascade", "clip_txt_mapper.weight", "down_blocks.0.0.channelwise.0.weight"],
  ["Stable Cascade", "effnet_mapper.0.weight"],
  ["AuraFlow", "double_layers.0.attn.w1q.weight", "cond_seq_linear.weight"],
  ["PixArt", "adaln_single.linear.weight", "transformer_blocks.0.attn1.to_q.weight"],
  ["PixArt", "t_block.1.weight", "blocks.0.attn.qkv.weight"],
  ["Hunyuan-DiT", "mlp_t5.0.weight", "blocks.0.attn1.Wqkv.weight"],
  ["Hunyuan Video", "txt_in.individual_token_refiner.blocks.0.norm1.weight", "double_blocks.0.img_attn_qkv.weight"],
  ["Wan", "blocks.0.cross_attn.q.weight", "text_embedding.0.weight", "time_projection.1.weight"],
  ["LTX", "patchify_proj.weight", "adaln_single.linear.weight"],
  ["Lumina", "cap_embedder.0.weight", "layers.0.attention.qkv.weight"],
  ["Mochi", "t5_yproj.weight"],
  ["HiDream", "double_stream_blocks.0.block.attn1.to_q.weight"],
  ["Cosmos", "net.blocks.block0.blocks.0.block.attn.to_q.0.weight"],
  ["DiffSynth", "controlnet_blocks.0.y_rms.weight", "controlnet_blocks.0.x_rms.weight"],
  ["InstantX", "controlnet_blocks.0.weight", "controlnet_x_embedder.weight", "txt_norm.weight"],
  ["mmproj", "v.blk.0.attn_q.weight", "mm.0.weight"],
  ["Stable Video Diffusion", "model.diffusion_model.input_blocks.1.1.time_stack.0.norm1.weight"],
  ["LoRA", "lora_unet_down_blocks_0_attentions_0_proj_in.lora_up.weight"],
  ["LoRA", "unet.down_blocks.0.attentions.0.transformer_blocks.0.attn1.to_q.lora_A.weight"],
  ["LoHa", "lycoris_down_blocks_0_attentions_0_proj_in.hada_w1_a"],
  ["LoKr", "lycoris_down_blocks_0_attentions_0_proj_in.lokr_w1"],
  ["ControlNet-LLLite", "lllite_unet_input_blocks_4_1_transformer_blocks_0_attn1_to_q.down.0.weight"],
  ["style model of Flux (Redux)", "redux_down.weight", "redux_up.weight"],
  ["IPAdapter", "image_proj.norm.weight", "ip_adapter.1.to_k_ip.weight"],
  ["T2I-Adapter", "adapter.body.0.resnets.0.block1.weight"],
  ["AnimateDiff", "down_blocks.0.motion_modules.0.temporal_transformer.norm.weight"],
  ["ControlNet", "control_model.zero_convs.0.0.weight", "control_model.input_blocks.0.0.weight"],
  ["T5", "encoder.block.0.layer.0.SelfAttention.q.weight", "shared.weight"],
  ["Mistral", "tekken_model", "model.layers.0.self_attn.q_proj.weight"],
  ["CLIP Vision", "vision_model.encoder.layers.0.mlp.fc1.weight"],
  ["text encoder", "text_model.embeddings.token_embedding.weight"],
  ["VAE", "decoder.conv_in.weight", "encoder.conv_in.weight"],
  ["tiny autoencoder", "taesd_decoder.1.weight"],
  ["upscale model", "model.1.sub.0.RDB1.conv1.0.weight"],
  ["textual inversion", "emb_params"],
  ["EMA", "model_ema.diffusion_modelinput_blocks00weight"],
];

const headers = (keys: readonly string[]): Shapes => Object.fromEntries(keys.map((key) => [key, [1]]));

describe("foreignKind", () => {
  it("names other kinds of models, which no checkpoint is taken for", async () => {
    for (const [kind, ...keys] of KINDS) {
      const file = headerOf(headers(keys));
      assert.ok(foreignKind(file.weights)?.includes(kind), `${keys[0]}: ${foreignKind(file.weights)}`);
      const error = await refuses(
        recogniseCheckpoint(file, () => Promise.reject(new Error("no values are needed"))),
        "model.unsupported",
      );
      assert.match(
        error.message,
        /^Model "model\.safetensors": expected a checkpoint of [^,]+, [^,]+, [^,]+, [^,]+, Z-Image, Qwen-Image, Flux\.1, Flux\.2 or Chroma, received .+\.$/,
      );
    }
  });

  it("knows no kind for unknown keys, and says so", async () => {
    const file = headerOf(headers(["foo", "bar.weight"]));
    assert.equal(foreignKind(file.weights), undefined);
    const work = recogniseCheckpoint(file, () => Promise.reject(new Error("no values are needed")));
    await refuses(work, "model.unsupported", /received unknown keys such as "[^"]+"\.$/);
  });

  it("says that a file has no tensors", async () => {
    const work = recogniseCheckpoint(headerOf({}), () => Promise.reject(new Error("no values are needed")));
    await refuses(work, "model.unsupported", /received a file without tensors\.$/);
  });

  it("knows a checkpoint if another kind is expected", () => {
    const kind = foreignKind(headerOf(fullSizeShapes().sd1).weights);
    assert.match(kind!, /^a Stable Diffusion checkpoint with the key "model\.diffusion_model\.output_blocks\./);
  });
});
